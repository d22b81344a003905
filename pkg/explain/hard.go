// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
)

// The allocator tries all combinations, and their number can be beyond all
// measure: 25 devices of 24 take minutes. Where it may be so and counting
// proves that nothing fits, it is not waited for.
const (
	// longSearch is the number of combinations, as a power of two, from which
	// on a node is decided by counting first.
	longSearch = 17
	// patience is how long the allocator may take all the same, and triedHard
	// on how many such nodes it is asked.
	patience  = time.Second
	triedHard = 2
	// countingTime bounds the counting for one node.
	countingTime = 2 * time.Second
	// schedulerLimit is how long the scheduler waits, where it has a limit.
	schedulerLimit = 10 * time.Second
)

// check asks the allocator about all candidates. Nodes that it would search
// for long, although nothing fits there, are decided by counting.
func (x *inquiry) check(ctx context.Context) ([]allocator.Verdict, error) {
	nodes := x.site.candidates
	end := len(nodes)
	hard := map[int]bool{}
	for i, node := range nodes {
		if x.combinations(node.Name) < longSearch {
			continue
		}
		counting, cancel := context.WithTimeout(ctx, countingTime)
		hard[i] = x.fast(counting, node) == decision.Infeasible && !x.mayFail(ctx, node)
		cancel()
	}
	if len(hard) == 0 {
		return x.site.alloc.CheckAll(ctx, nodes, x.claimsFor), nil
	}
	hasty, err := allocator.New(ctx, x.snap, allocator.WithTimeout(patience))
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	verdicts := make([]allocator.Verdict, len(nodes))
	tried, slow, fits := 0, -1, false
	for i := 0; i < end; i++ {
		claims, err := x.claimsFor(nodes[i])
		switch {
		case err != nil:
			verdicts[i] = allocator.Verdict{Outcome: allocator.NodeError, Err: err}
			continue
		case !hard[i]:
			verdicts[i] = x.site.alloc.Check(ctx, nodes[i], claims)
		case tried < triedHard:
			tried++
			verdicts[i] = hasty.Check(ctx, nodes[i], claims)
			if verdicts[i].Outcome == allocator.TimedOut {
				slow = i
				verdicts[i] = allocator.Verdict{Outcome: allocator.DoesNotFit}
			}
		default:
			verdicts[i] = allocator.Verdict{Outcome: allocator.DoesNotFit}
		}
		fits = fits || verdicts[i].Outcome == allocator.Fits
		if verdicts[i].Outcome == allocator.Failed || verdicts[i].Outcome == allocator.TimedOut {
			end = i + 1
		}
	}
	for i := end; i < len(nodes); i++ {
		verdicts[i] = allocator.Verdict{Outcome: allocator.NotTried}
	}
	switch {
	case slow >= 0 && fits:
		// It matters whether the scheduler gives up.
		claims, err := x.claimsFor(nodes[slow])
		if err != nil {
			return nil, err
		}
		patient, err := allocator.New(ctx, x.snap, allocator.WithTimeout(schedulerLimit))
		if err != nil {
			return nil, fmt.Errorf("set up the allocator: %w", err)
		}
		if verdict := patient.Check(ctx, nodes[slow], claims); verdict.Outcome == allocator.TimedOut {
			verdicts[slow] = verdict
		}
	case slow >= 0:
		x.slowNode = nodes[slow].Name
	}
	return verdicts, ctx.Err()
}

// mayFail says whether a selector fails on a device of a node, which ends the
// attempt for all nodes if the allocator gets to see it.
func (x *inquiry) mayFail(ctx context.Context, node *corev1.Node) bool {
	for _, claim := range x.claims {
		for _, alternatives := range claim.funnels {
			for _, f := range alternatives {
				for _, pool := range x.site.pools[node.Name] {
					for i := range pool.Devices {
						if r := f.checks.device(ctx, &pool.Devices[i], node); r != nil && r.code == SelectorError {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

// combinations estimates, as a power of two, how many sets of devices the
// allocator tries on a node before it gives up.
func (x *inquiry) combinations(node string) float64 {
	bits := 0.0
	for _, claim := range x.claims {
		for _, alternatives := range claim.funnels {
			most := 0.0
			for _, f := range alternatives {
				if f.request.all() {
					continue
				}
				most = max(most, combinationsOf(f.eligible[node], f.request.count))
			}
			bits += most
		}
	}
	return bits
}

// combinationsOf is the binary logarithm of n over k, or of the number of all
// subsets where k is more than n.
func combinationsOf(n int, k int64) float64 {
	if k > int64(n) {
		return float64(n)
	}
	lgamma := func(v float64) float64 {
		value, _ := math.Lgamma(v)
		return value
	}
	return (lgamma(float64(n)+1) - lgamma(float64(k)+1) - lgamma(float64(int64(n)-k)+1)) / math.Ln2
}
