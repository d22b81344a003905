// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Sequence places copies one after another, each on the first node where it fits, until
// none fits anywhere or there are most of them. A node where one did not fit is tried
// again only once others were placed elsewhere. It fails only if ctx is done.
func sequence(ctx context.Context, q *eligibility.Question, s *cluster.Cluster, nodes []*corev1.Node, most int) (*filled, error) {
	f := &filled{State: s, Copies: make([]int, len(nodes)), Undecided: make([]error, len(nodes))}
	placer := &placer{q: q}
	again := depends(q.Pod)
	for total, placed := 0, true; placed; {
		placed = false
		for i, node := range nodes {
			for {
				if total == most {
					f.Undecided[i] = errEnough
					return f, nil
				}
				r, err := placer.place(ctx, f.State, placer.next(), node)
				if ctx.Err() != nil {
					return nil, fmt.Errorf("count copies: %w", ctx.Err())
				}
				f.Undecided[i] = err
				if r == nil {
					break
				}
				f.State = f.State.Amended(whatif.Reserve(f.State.Snapshot, *r))
				f.Copies[i]++
				total++
				placed = again
			}
		}
	}
	return f, nil
}

// depends reports whether pods placed elsewhere can make a node suitable for a pod.
func depends(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable == corev1.DoNotSchedule
		})
}

// searchSteps is how many steps the allocator may take for a copy on a node, before
// counting is asked: some tenths of a second.
const searchSteps = 4_000_000

// filled is the result of placing copies.
type filled struct {
	// State has all copies that were placed.
	State *cluster.Cluster
	// Copies has for each node how many it takes.
	Copies []int
	// Undecided has for each node why it is not known whether it takes one more, nil
	// where it is known that it does not.
	Undecided []error
}

// Total counts the copies.
func (f *filled) Total() int {
	total := 0
	for _, n := range f.Copies {
		total += n
	}
	return total
}

// errEnough is why a node is not asked for one more copy.
var errEnough = errors.New("it takes at least as many as were tried")

// fill places copies of the pod of a question on nodes that do not depend on each other,
// on each until no further one fits or there are most of them. Each round places one
// copy on each node. It fails only if ctx is done.
func fill(ctx context.Context, q *eligibility.Question, s *cluster.Cluster, nodes []*corev1.Node, most int) (*filled, error) {
	f := &filled{State: s, Copies: make([]int, len(nodes)), Undecided: make([]error, len(nodes))}
	open := make([]int, len(nodes))
	for i := range nodes {
		open[i] = i
	}
	placer := &placer{q: q}
	for round := 0; len(open) > 0; round++ {
		if round == most {
			for _, i := range open {
				f.Undecided[i] = errEnough
			}
			return f, nil
		}
		placed, undecided := placer.placeEach(ctx, f.State, nodes, open)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("count copies: %w", err)
		}
		var reservations []whatif.Reservation
		var next []int
		for at, i := range open {
			f.Undecided[i] = undecided[at]
			if placed[at] != nil {
				f.Copies[i]++
				reservations, next = append(reservations, *placed[at]), append(next, i)
			}
		}
		open = next
		if len(reservations) == 0 {
			break
		}
		f.State = f.State.Amended(whatif.ReserveAll(f.State.Snapshot, reservations))
	}
	return f, nil
}

// placer makes copies and places them.
type placer struct {
	q *eligibility.Question
	// made counts the copies.
	made int
}

// next returns another copy. No object in a cluster can have its name.
func (p *placer) next() *corev1.Pod {
	p.made++
	return numbered(p.q.Pod, p.made)
}

// numbered returns a copy of a pod with a name that no object in a cluster can have.
func numbered(pod *corev1.Pod, number int) *corev1.Pod {
	numbered := *pod
	numbered.Name = fmt.Sprintf("%s-…%d", pod.Name, number)
	return &numbered
}

// placeEach looks for devices for one copy on each of some nodes, which are given by
// their indices.
func (p *placer) placeEach(ctx context.Context, s *cluster.Cluster, nodes []*corev1.Node, open []int) ([]*whatif.Reservation, []error) {
	placed, undecided := make([]*whatif.Reservation, len(open)), make([]error, len(open))
	pods := make([]*corev1.Pod, len(open))
	for at := range open {
		pods[at] = p.next()
	}
	var workers sync.WaitGroup
	tasks := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(open)) {
		workers.Go(func() {
			for at := range tasks {
				placed[at], undecided[at] = p.place(ctx, s, pods[at], nodes[open[at]])
			}
		})
	}
	for at := range open {
		tasks <- at
	}
	close(tasks)
	workers.Wait()
	return placed, undecided
}

// place looks for devices on one node. Where the allocator searches for long, counting
// may prove that there are none.
func (p *placer) place(ctx context.Context, s *cluster.Cluster, pod *corev1.Pod, node *corev1.Node) (*whatif.Reservation, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	limited, budget := allocator.WithBudget(ctx, searchSteps)
	defer budget.End()
	r, err := allocator.NewAttempt(s, pod).On(limited, node)
	if err == nil || ctx.Err() != nil {
		return r, err
	}
	if fits, known := verdict.FitsByCounting(ctx, p.q, s, node, pending(s, pod, node)); known && !fits {
		return nil, nil
	}
	return nil, err
}

// pending returns the claims of a pod that need devices on a node.
func pending(s *cluster.Cluster, pod *corev1.Pod, node *corev1.Node) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for _, pc := range s.Claims.OfPod(pod) {
		claim := pc.Claim
		if pc.ExtendedResources {
			// An error means that the pod cannot use the node.
			claim, _ = s.Claims.ExtendedResourceClaim(pod, node)
		}
		if claim != nil && claim.Status.Allocation == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}
