// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"math"
)

// firstFitTries is how many candidates the search in order may try before
// the complete method takes over. Most feasible problems are solved by then,
// with the devices that the scheduler would pick.
const firstFitTries = 2000

// Decide decides whether all requests of the problem can be satisfied together.
// The answer is Unknown only when ctx is done before.
func Decide(ctx context.Context, p *Problem) Result {
	return newSolver(ctx, p).decide(firstFitTries)
}

// decide tries the first fit with that many tries and then the complete
// method.
func (s *solver) decide(tries int) Result {
	if s.ctx.Err() != nil {
		return Result{Answer: Unknown}
	}
	demands, ok := s.demands()
	if !ok {
		return Result{Answer: Infeasible}
	}
	if tries > 0 {
		switch chosen, outcome := s.firstFit(demands, tries); {
		case s.stopped:
			return Result{Answer: Unknown}
		case outcome == fitFound:
			return Result{Answer: Feasible, Chosen: chosen}
		case outcome == fitNone:
			return Result{Answer: Infeasible}
		}
	}
	chosen := make([]Choice, len(s.problem.Requests))
	for _, part := range s.partition(demands) {
		ok := s.solvePart(part, chosen)
		if s.crowded {
			return s.exhaust(demands)
		}
		if s.stopped {
			return Result{Answer: Unknown}
		}
		if !ok {
			return Result{Answer: Infeasible}
		}
	}
	return Result{Answer: Feasible, Chosen: chosen}
}

// exhaust tries everything, which needs no memory but may take forever.
func (s *solver) exhaust(demands []demand) Result {
	s.memo, s.stopped, s.crowded = nil, false, false
	switch chosen, outcome := s.firstFit(demands, math.MaxInt); outcome {
	case fitFound:
		return Result{Answer: Feasible, Chosen: chosen}
	case fitNone:
		return Result{Answer: Infeasible}
	default:
		return Result{Answer: Unknown}
	}
}
