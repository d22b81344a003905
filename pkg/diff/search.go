// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

const (
	// mostChanges limits the changes of a set: all of its parts are tried.
	mostChanges = 4
	// mostTrials and leastTrials limit how often the allocator is asked for one difference. In
	// between, it is asked less often in a larger cluster: triedObjects are the objects of all
	// questions together.
	mostTrials   = 400
	leastTrials  = 32
	triedObjects = 1_000_000
)

// errTrials means that a search has asked often enough.
var errTrials = errors.New("too many trials")

// changedTarget is a target whose answer may differ.
type changedTarget struct {
	options explain.Options
	was, is api.AnswerState
	// own are changes of the target itself that are no candidates, because it waits in one of the
	// states alone. With returned, it waits in the old one, and own is undone in each trial.
	own      []*change
	returned bool
	// set is the minimal set of blocks of changes, nil if it is not known.
	set [][]*change
}

// outcome returns a verdict as far as it counts as a difference.
func outcome(v api.Verdict) api.Verdict {
	if v == api.Allocated {
		return api.Fits
	}
	return v
}

// trials asks the allocator about the new state with changes undone.
type trials struct {
	*comparison
	cluster *cluster.Cluster
	// left is how many more questions a search may ask.
	left int
}

func newTrials(c *comparison, later *cluster.Cluster) *trials {
	objects := len(c.new.Nodes) + len(c.new.Slices) + len(c.new.Claims) + len(c.new.Pods)
	return &trials{c, later, min(max(triedObjects/max(objects, 1), leastTrials), mostTrials)}
}

// with returns the verdicts about targets with changes undone. A target that does not exist then
// has none.
func (t *trials) with(ctx context.Context, undone []*change, targets []explain.Options) ([]api.Verdict, error) {
	var refs []api.ObjectRef
	settings := false
	for _, ch := range undone {
		refs, settings = append(refs, ch.undo...), settings || ch.settings
	}
	c := t.cluster
	if len(undone) > 0 {
		c = c.Amended(whatif.Restore(t.new, t.old, refs, settings))
	}
	answers, err := explain.ReasonsOfEach(ctx, c, targets, nil)
	if err != nil {
		return nil, fmt.Errorf("compare answers: %w", err)
	}
	verdicts := make([]api.Verdict, 0, len(answers))
	for _, answer := range answers {
		verdict := api.Verdict("")
		if answer.Explanation != nil {
			verdict = outcome(answer.Explanation.Verdict)
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, nil
}

// search looks for a minimal set of changes of one target.
type search struct {
	*trials
	*changedTarget
	known map[string]bool
}

func (t *trials) search(of *changedTarget) *search {
	return &search{t, of, map[string]bool{}}
}

// back reports whether the old verdict is back with some changes undone.
func (s *search) back(ctx context.Context, undone []*change) (bool, error) {
	key := ""
	for _, ch := range s.changes {
		if slices.Contains(undone, ch) {
			key += "1"
		} else {
			key += "0"
		}
	}
	if known, ok := s.known[key]; ok {
		return known, nil
	}
	if s.left--; s.left < 0 {
		return false, errTrials
	}
	if s.returned {
		undone = slices.Concat(undone, s.own)
	}
	verdicts, err := s.with(ctx, undone, []explain.Options{s.options})
	if err != nil {
		return false, err
	}
	s.known[key] = verdicts[0] == outcome(s.was.Verdict)
	return s.known[key], nil
}

// union returns the changes of some blocks.
func union(blocks [][]*change, in []int) []*change {
	var all []*change
	for _, i := range in {
		all = append(all, blocks[i]...)
	}
	return all
}

// minimal returns a minimal part of some blocks of changes with which the old verdict is back; it
// is with all of them.
func (s *search) minimal(ctx context.Context, blocks [][]*change) ([][]*change, error) {
	all := make([]int, len(blocks))
	for i := range all {
		all[i] = i
	}
	chosen, err := advice.Minimal(func(in []int) (bool, error) { return s.back(ctx, union(blocks, in)) }, nil, all)
	if err != nil {
		return nil, err
	}
	slices.Sort(chosen)
	out := make([][]*change, 0, len(chosen))
	for _, i := range chosen {
		out = append(out, blocks[i])
	}
	return out, nil
}

// units returns the candidates by unit, in their order.
func (s *search) units() [][]*change {
	var blocks [][]*change
	at := map[string]int{}
	for _, ch := range s.changes {
		if slices.Contains(s.own, ch) {
			continue
		}
		if _, ok := at[ch.unit]; !ok {
			at[ch.unit], blocks = len(blocks), append(blocks, nil)
		}
		blocks[at[ch.unit]] = append(blocks[at[ch.unit]], ch)
	}
	return blocks
}

// parts returns the parts of a set by their size, without the empty one.
func parts(set [][]*change) [][][]*change {
	var list [][][]*change
	for mask := 1; mask < 1<<len(set); mask++ {
		var part [][]*change
		for i := range set {
			if mask>>i&1 == 1 {
				part = append(part, set[i])
			}
		}
		list = append(list, part)
	}
	slices.SortStableFunc(list, func(a, b [][]*change) int { return len(a) - len(b) })
	return list
}

// find returns a minimal set of blocks of changes, or why there is none.
func (s *search) find(ctx context.Context) (set [][]*change, note string, err error) {
	set, err = s.findSet(ctx)
	switch {
	case errors.Is(err, errTrials):
		return nil, "not known which changes made the difference: there are too many", nil
	case err != nil:
		return nil, "", err
	case set == nil:
		return nil, fmt.Sprintf("no set of up to %d changes is known whose undoing alone gives the old answer", mostChanges), nil
	default:
		return set, "", nil
	}
}

// findSet finds units first, and then the changes in them. A set with too many changes stays with
// its units.
func (s *search) findSet(ctx context.Context) ([][]*change, error) {
	units := s.units()
	var all []*change
	for _, unit := range units {
		all = append(all, unit...)
	}
	if already, err := s.back(ctx, nil); already || err != nil {
		return nil, err
	}
	if back, err := s.back(ctx, all); !back || err != nil {
		return nil, err
	}
	set, err := s.minimal(ctx, units)
	if err != nil {
		return nil, err
	}
	var single [][]*change
	for _, unit := range set {
		for _, ch := range unit {
			single = append(single, []*change{ch})
		}
	}
	// QuickXplain halves the candidates for each change that it finds. Half of the trials stay for
	// other answers.
	if len(single) > len(set) && 2*bits.Len(uint(len(single))) <= s.left/2 {
		refined, err := s.minimal(ctx, single)
		if err != nil && !errors.Is(err, errTrials) {
			return nil, err
		}
		if err == nil && len(refined) <= mostChanges {
			set = refined
		}
	}
	if len(set) > mostChanges {
		return nil, nil
	}
	// More undone changes can also take devices away: the smallest part that works is minimal.
	for _, part := range parts(set) {
		if back, err := s.back(ctx, slices.Concat(part...)); back || err != nil {
			return part, err
		}
	}
	return nil, nil
}

// holdsFor returns the targets for which a set is minimal, too.
func (t *trials) holdsFor(ctx context.Context, set [][]*change, others []*changedTarget) (same []*changedTarget, err error) {
	holds := make([]bool, len(others))
	for i := range holds {
		holds[i] = true
	}
	all := parts(set)
	for i, part := range all {
		verdicts, err := t.withEach(ctx, slices.Concat(part...), others)
		if err != nil {
			return nil, err
		}
		for k, other := range others {
			back := verdicts[k] == outcome(other.was.Verdict)
			holds[k] = holds[k] && back == (i == len(all)-1)
		}
	}
	for k, other := range others {
		if holds[k] {
			same = append(same, other)
		}
	}
	return same, nil
}

// withEach is like with, for targets: those that do not wait in the new state are put back into
// the queue one by one.
func (t *trials) withEach(ctx context.Context, undone []*change, changedTargets []*changedTarget) ([]api.Verdict, error) {
	verdicts := make([]api.Verdict, len(changedTargets))
	var targets []explain.Options
	var at []int
	for i, s := range changedTargets {
		if !s.returned {
			targets, at = append(targets, s.options), append(at, i)
			continue
		}
		own, err := t.with(ctx, slices.Concat(undone, s.own), []explain.Options{s.options})
		if err != nil {
			return nil, err
		}
		verdicts[i] = own[0]
	}
	shared, err := t.with(ctx, undone, targets)
	if err != nil {
		return nil, err
	}
	for k, i := range at {
		verdicts[i] = shared[k]
	}
	return verdicts, nil
}
