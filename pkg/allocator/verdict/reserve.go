// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// decideKind decides the first pod of a kind, in the cluster as it is, unless that is known.
func (q *Queue) decideKind(ctx context.Context, kind *Kind) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if kind.Verdict != nil {
		return nil
	}
	p := kind.First
	besides := !p.Asked && p.PreemptedBy == nil && !q.Shares
	if besides {
		if known := memoryOf(q.cluster).get(kind.key); known != nil {
			q.Know(kind, known)
			return nil
		}
	}
	asked := q.ClusterOf(kind)
	start := time.Now()
	selectors, back := asked.Evaluators.Lend()
	defer back()
	v, err := Decide(ctx, asked, q.TargetOf(p), selectors)
	if err != nil {
		return fmt.Errorf("explain pod %s/%s: %w", p.Pod.Namespace, p.Pod.Name, err)
	}
	q.Know(kind, v)
	if besides {
		memoryOf(q.cluster).add(kind.key, remembered{kind.Verdict, p.Pod.Namespace, q.cluster.Snapshot.Now(), time.Since(start)})
	}
	return nil
}

// ClusterOf returns the cluster in which the pods of a kind are decided: the one as it is,
// but for pods that have left a node since.
func (q *Queue) ClusterOf(kind *Kind) *cluster.Cluster {
	if kind.First.PreemptedBy != nil {
		return q.After
	}
	return q.cluster
}

// Know takes the verdict about the first pod of a kind, in its cluster.
func (q *Queue) Know(kind *Kind, v *Verdict) {
	kind.Verdict, kind.nodes = v.brief(), nil
	defer func() {
		for _, node := range q.reopened {
			kind.reopen(node)
		}
	}()
	if !q.placeable(kind) {
		return
	}
	nodes, _ := q.cluster.Nodes.All()
	byName := make(map[string]*corev1.Node, len(nodes))
	for _, node := range nodes {
		byName[node.Name] = node
	}
	add := func(name string) {
		if node := byName[name]; node != nil {
			kind.nodes = append(kind.nodes, node)
			delete(byName, name)
		}
	}
	// What the allocator picks comes first.
	if v.Placement != nil {
		add(v.Placement.Node.Name)
	}
	for _, name := range v.fits {
		add(name)
	}
}

// TargetOf returns a pod of the queue as the target of a question in the cluster where it
// is decided.
func (q *Queue) TargetOf(p *Queued) *target.Target {
	s := &target.Target{
		Options: target.Options{Object: api.RefTo(api.KindPod, p.Pod), AllRemedies: p.opts.AllRemedies}, Hypothetical: p.Hypothetical, Member: p.Member,
	}
	if !p.Hypothetical {
		s.Users = []*corev1.Pod{p.Pod}
	}
	c := q.cluster
	if p.PreemptedBy != nil {
		c = q.After
	}
	s.UsePod(c, p.Pod)
	return s
}

// reserve gives the pod the first node of its kind where it still fits. A node where an
// equal pod did not fit is left out from then on: what is reserved only grows.
func (q *Queue) reserve(ctx context.Context, p *Queued) error {
	attempt := allocator.NewAttempt(q.After, p.Pod)
	for len(p.Kind.nodes) > 0 {
		reservation, err := attempt.On(ctx, p.Kind.nodes[0])
		var undecided *allocator.UndecidedError
		if err != nil && !errors.As(err, &undecided) {
			return err
		}
		if undecided != nil && p.Undecided == nil {
			p.Undecided = err
		}
		if reservation != nil {
			p.Reservation, p.Undecided = reservation, nil
			q.After = q.After.Amended(whatif.Reserve(q.After.Snapshot, *reservation))
			return nil
		}
		p.Kind.nodes = p.Kind.nodes[1:]
	}
	if p.Kind.before == nil && q.placeable(p.Kind) {
		p.Kind.before = takers(q.order, p.Kind)
	}
	p.Before = p.Kind.before
	return nil
}

// takers returns the pods of a queue that get the devices that pods of a kind could have:
// equal pods, pods that get the very devices that were picked for it or, if there are
// neither, pods that get something else of the nodes where it fits.
func takers(queue []*Queued, kind *Kind) []*Queued {
	picked := map[string]bool{}
	if placement := kind.Verdict.Placement; placement != nil {
		for i := range placement.Allocations {
			addDevices(picked, &placement.Allocations[i])
		}
	}
	fits := map[string]bool{}
	for _, name := range kind.Verdict.fits {
		fits[name] = true
	}
	var takers, neighbors []*Queued
	for _, p := range queue {
		if !p.Gets() {
			continue
		}
		there := fits[p.Reservation.Node]
		if there {
			neighbors = append(neighbors, p)
		}
		got := map[string]bool{}
		for i := range p.Reservation.Claims {
			if allocation := p.Reservation.Claims[i].Allocation; allocation != nil {
				addDevices(got, allocation)
			}
		}
		taken := false
		for id := range got {
			taken = taken || picked[id]
		}
		if there && p.Kind == kind || taken {
			takers = append(takers, p)
		}
	}
	if len(takers) > 0 {
		return takers
	}
	return neighbors
}

// addDevices adds the devices of an allocation to a set.
func addDevices(set map[string]bool, allocation *resourceapi.AllocationResult) {
	for _, r := range allocation.Devices.Results {
		set[r.Driver+"/"+r.Pool+"/"+r.Device] = true
	}
}
