// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
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
	// confirmTime bounds what it takes in vain, in all, about what exists in
	// thought only where counting says that the claims fit: half of it the first
	// time, and half as long each time.
	confirmTime = patience / 4
	// countingTime bounds the counting for one node.
	countingTime = 2 * time.Second
	// schedulerLimit is how long the scheduler waits, where it has a limit.
	schedulerLimit = 10 * time.Second
)

// check asks the allocator about the candidates, of those that are alike about
// the first. Nodes that it would search for long, although counting says that
// nothing fits there, are not asked about: they are returned as hard.
func check(ctx context.Context, q *funnel.Question, like []int) (verdicts []allocator.Verdict, hard []int) {
	var first []int
	var nodes []*corev1.Node
	for i, node := range q.Cluster.Candidates {
		if like[i] == i {
			first, nodes = append(first, i), append(nodes, node)
		}
	}
	verdicts = make([]allocator.Verdict, len(like))
	asked, notAsked := checkUnless(ctx, q, nodes, func(ctx context.Context, node *corev1.Node) bool { return isHard(ctx, q, node) })
	for at, verdict := range asked {
		verdicts[first[at]] = verdict
	}
	for _, at := range notAsked {
		hard = append(hard, first[at])
	}
	spread(like, verdicts)
	return verdicts, hard
}

// checkUnless asks the allocator about those nodes that are not hard. The claims
// do not fit on the others, whose indices it returns.
func checkUnless(ctx context.Context, q *funnel.Question, nodes []*corev1.Node, isHard func(context.Context, *corev1.Node) bool) (verdicts []allocator.Verdict, hard []int) {
	verdicts = make([]allocator.Verdict, len(nodes))
	var easy []int
	var asked []*corev1.Node
	for i, node := range nodes {
		if isHard(ctx, node) {
			verdicts[i] = allocator.Verdict{Outcome: allocator.DoesNotFit}
			hard = append(hard, i)
			continue
		}
		easy, asked = append(easy, i), append(asked, node)
	}
	for at, verdict := range q.Cluster.Alloc.CheckAll(ctx, asked, func(node *corev1.Node) ([]*resourceapi.ResourceClaim, error) { return q.ClaimsFor(node) }) {
		verdicts[easy[at]] = verdict
	}
	return verdicts, hard
}

// spread gives nodes the verdict of the one that they are like, and makes those
// after an error that ends the attempt NotTried.
func spread(like []int, verdicts []allocator.Verdict) {
	for i, first := range like {
		if first != i {
			verdicts[i] = verdicts[first]
		}
	}
	end := slices.IndexFunc(verdicts, func(v allocator.Verdict) bool {
		return v.Outcome == allocator.Failed || v.Outcome == allocator.TimedOut
	})
	for i := range verdicts {
		if end >= 0 && i > end {
			verdicts[i] = allocator.Verdict{Outcome: allocator.NotTried}
		}
	}
}

func anyFits(verdicts []allocator.Verdict) bool {
	return slices.ContainsFunc(verdicts, func(v allocator.Verdict) bool { return v.Outcome == allocator.Fits })
}

// isHard reports whether the allocator may search a node for long and find nothing.
func isHard(ctx context.Context, q *funnel.Question, node *corev1.Node) bool {
	if combinations(q, node.Name) < longSearch {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, countingTime)
	defer cancel()
	return fast(ctx, q, node) == decision.Infeasible && !mayFail(ctx, q, node)
}

// isHardAlone is isHard where nothing is accounted for yet. Most nodes do not
// even have as many devices as make it worth the while.
func isHardAlone(ctx context.Context, q *funnel.Question, node *corev1.Node) bool {
	devices := 0
	for _, pool := range q.Cluster.Pools[node.Name] {
		devices += len(pool.Devices)
	}
	claims, err := q.ClaimsFor(node)
	if err != nil || mostCombinations(claims, devices) < longSearch {
		return false
	}
	one, err := alone(ctx, q, q.Cluster.Alloc, q.Snap, node, claims)
	return err == nil && isHard(ctx, one, node)
}

// search is the allocator's own search on nodes that were decided by counting.
// It goes on in the background for as long as patience lasts.
type search struct {
	nodes    []int
	verdicts []allocator.Verdict
	cancel   context.CancelFunc
	workers  sync.WaitGroup
}

func startSearch(ctx context.Context, q *funnel.Question, hard []int) *search {
	s := &search{nodes: hard[:min(len(hard), triedHard)]}
	s.verdicts = make([]allocator.Verdict, len(s.nodes))
	ctx, s.cancel = context.WithTimeout(ctx, patience)
	for at, i := range s.nodes {
		node := q.Cluster.Candidates[i]
		claims, err := q.ClaimsFor(node)
		if err != nil {
			s.verdicts[at] = allocator.Verdict{Outcome: allocator.NodeError, Err: err}
			continue
		}
		s.workers.Go(func() { s.verdicts[at] = q.Cluster.Alloc.Check(ctx, node, claims) })
	}
	return s
}

func (s *search) stop() {
	s.cancel()
	s.workers.Wait()
}

// await waits for the search. It corrects the verdicts, and reports whether it
// had to, where the allocator says something else than counting, or would make
// the scheduler give up although there is a node where the claims fit.
func (x *inquiry) await(ctx context.Context, s *search, like []int, verdicts []allocator.Verdict) (changed bool, err error) {
	s.workers.Wait()
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("check the nodes: %w", err)
	}
	slow := -1
	for at, i := range s.nodes {
		switch verdict := s.verdicts[at]; verdict.Outcome {
		case allocator.DoesNotFit:
		case allocator.Cancelled, allocator.TimedOut:
			if slow < 0 {
				slow = i
			}
		default:
			verdicts[i], changed = verdict, true
		}
	}
	if changed {
		spread(like, verdicts)
	}
	if slow < 0 || verdicts[slow].Outcome != allocator.DoesNotFit {
		return changed, ctx.Err()
	}
	if !anyFits(verdicts) {
		x.slowNode = x.Cluster.Candidates[slow].Name
		return changed, nil
	}
	claims, err := x.ClaimsFor(x.Cluster.Candidates[slow])
	if err != nil {
		return false, err
	}
	patient, err := allocator.New(ctx, x.Snap, allocator.WithTimeout(schedulerLimit))
	if err != nil {
		return false, fmt.Errorf("set up the allocator: %w", err)
	}
	if verdict := patient.Check(ctx, x.Cluster.Candidates[slow], claims); verdict.Outcome == allocator.TimedOut {
		verdicts[slow], changed = verdict, true
	}
	return changed, ctx.Err()
}

// mayFail reports whether a selector fails on a device of a node, which ends the
// attempt for all nodes if the allocator gets to see it.
func mayFail(ctx context.Context, q *funnel.Question, node *corev1.Node) bool {
	for _, claim := range q.Claims {
		for _, alternatives := range claim.Funnels {
			for _, f := range alternatives {
				for _, pool := range q.Cluster.Pools[node.Name] {
					for i := range pool.Devices {
						if r := f.Checks.Device(ctx, &pool.Devices[i], node); r != nil && r.Code == api.SelectorError {
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
func combinations(q *funnel.Question, node string) float64 {
	bits := 0.0
	for _, claim := range q.Claims {
		for _, alternatives := range claim.Funnels {
			most := 0.0
			for _, f := range alternatives {
				if f.Request.All() {
					continue
				}
				most = max(most, combinationsOf(f.Eligible[node], f.Request.Count))
			}
			bits += most
		}
	}
	return bits
}

// mostCombinations is the most that combinations can be where a node has so many
// devices.
func mostCombinations(claims []*resourceapi.ResourceClaim, devices int) float64 {
	bits := 0.0
	for _, claim := range claims {
		for _, alternatives := range claimspec.Requests(claim) {
			most := 0.0
			for _, r := range alternatives {
				switch {
				case r.All():
				case r.Count > int64(devices/2):
					most = max(most, float64(devices))
				default:
					most = max(most, combinationsOf(devices, r.Count))
				}
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
