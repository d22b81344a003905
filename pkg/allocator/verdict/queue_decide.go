// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Add puts the pods of a target into the queue.
func (q *Queue) Add(s *target.Target) {
	if !s.Workload {
		p := q.add(s.Pod, s.Hypothetical)
		p.Asked, p.Target, p.opts = true, true, s.Options
		return
	}
	for _, pod := range s.New {
		q.AddPod(pod)
	}
	for _, pod := range s.Users {
		if snapshot.Waits(pod) {
			q.AddPod(target.WithClassPriority(q.cluster.Snapshot, pod))
		}
	}
}

// AddPod adds a pod of a workload or a PodGroup. If that is a gang, all of its pods are decided at
// the same time.
func (q *Queue) AddPod(pod *corev1.Pod) {
	p := q.add(pod, target.Hypothetical(pod))
	p.Asked = true
	q.gangs.join(p, q.add)
}

// Decide goes through the queue. As long as nothing that was asked about fits, nobody can take
// anything from it, and the others are left out. If Planned is set, pods that others may have made
// room for are tried again: a pod that keeps near to other pods, or that shares a claim with one.
func (q *Queue) Decide(ctx context.Context) error {
	fits := false
	for _, kind := range q.Kinds() {
		if err := q.decideKind(ctx, kind); err != nil {
			return err
		}
		fits = fits || q.placeable(kind)
	}
	if !fits && !q.Preempts {
		return nil
	}
	for _, pod := range q.cluster.Snapshot.Pods {
		if snapshot.Waits(pod) && len(pod.Spec.SchedulingGates) == 0 && len(q.kinds.claimsOf(pod)) > 0 {
			q.add(target.WithClassPriority(q.cluster.Snapshot, pod), false)
		}
	}
	slices.SortStableFunc(q.order, compareQueued)
	// Pods that are preempted are added behind the decided pod.
	for at := 0; at <= q.last(); at++ {
		if err := q.decide(ctx, q.order[at]); err != nil {
			return err
		}
	}
	if !q.Planned {
		return nil
	}
	return q.retry(ctx)
}

// retry tries pods again until none of them fits that others have made room for.
func (q *Queue) retry(ctx context.Context) error {
	for placed := true; placed; {
		placed = false
		for _, p := range q.order {
			if p.Reservation != nil || p.gang != nil || len(p.Pod.Spec.SchedulingGates) > 0 || !q.dependsOnOthers(p.Pod) || p.Kind.Verdict.Outcome != api.Fits && p.Kind.Verdict.Outcome != api.DoesNotFit {
				continue
			}
			r, err := allocator.Place(ctx, q.After, p.Pod, nil)
			if err != nil && ctx.Err() != nil {
				return err
			}
			if r == nil {
				continue
			}
			q.After = q.After.Amended(whatif.Reserve(q.After.Snapshot, *r))
			p.Reservation, p.Before, placed = r, nil, true
		}
	}
	return nil
}

// last returns the place in the queue of the last pod that has to be decided.
func (q *Queue) last() int {
	for at := len(q.order) - 1; at > 0; at-- {
		if q.order[at].Asked {
			return at
		}
	}
	return 0
}

// decide finds out what the next pod of the queue gets.
func (q *Queue) decide(ctx context.Context, p *Queued) error {
	q.kinds.sort(p)
	if err := q.decideKind(ctx, p.Kind); err != nil {
		return err
	}
	if p.Kind.Verdict.Life.Stage == api.StageQueueing || len(p.Pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	fits := q.placeable(p.Kind)
	switch {
	case p.gang != nil && fits:
		return q.decideGang(ctx, p.gang.top())
	case p.gang == nil && (fits || p.Kind.Verdict.Outcome == api.DoesNotFit && len(p.Kind.nodes) > 0):
		if err := q.reserve(ctx, p); err != nil {
			return err
		}
	}
	return (&preemption{q, p}).preempt(ctx)
}

// decideGang decides all pods of a gang, one after another, as the scheduler does
// when the first of them is the next in its queue (pkg/scheduler/schedule_one_podgroup.go
// of Kubernetes v1.37.1): of a CompositePodGroup one group after another. Unless enough
// of them fit, none of them takes anything from the pods that come later.
func (q *Queue) decideGang(ctx context.Context, g *gang) error {
	if g.decided {
		return nil
	}
	g.decided, g.fit = true, g.placed
	before := q.After
	for _, child := range g.children {
		if err := q.decideGang(ctx, child); err != nil {
			return err
		}
		if child.enough() {
			g.fit++
		}
	}
	slices.SortStableFunc(g.pods, compareQueued)
	for _, p := range g.pods {
		fits, err := q.decideMember(ctx, p)
		if err != nil {
			return err
		}
		if fits {
			g.fit++
		}
	}
	if !g.enough() {
		q.After = before
	}
	return nil
}

// decideMember reports whether a pod has its devices or gets them, which are reserved
// then.
func (q *Queue) decideMember(ctx context.Context, p *Queued) (bool, error) {
	q.kinds.sort(p)
	if err := q.decideKind(ctx, p.Kind); err != nil {
		return false, err
	}
	switch p.Kind.Verdict.Outcome {
	case api.Allocated:
		if !q.Planned {
			return true, nil
		}
		fallthrough
	case api.Fits:
		err := q.reserve(ctx, p)
		return p.Reservation != nil, err
	default:
		return false, nil
	}
}

// decideGang decides the gang that a pod belongs to, with all of its pods, in the
// cluster as it is. It is nil if there is none, or if the scheduler does not try it.
func decideGang(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod) (*target.Gang, error) {
	q := NewQueue(c, Options{})
	p := q.add(pod, target.Hypothetical(pod))
	q.gangs.join(p, q.add)
	if p.gang == nil {
		return nil, nil
	}
	if err := q.decideGang(ctx, p.gang.top()); err != nil {
		return nil, err
	}
	return p.gang.known(), nil
}

// Members lists the pods of a target that wait, in the order of the queue.
func (q *Queue) Members(s *target.Target) []*Queued {
	var pods []*Queued
	for _, pod := range slices.Concat(s.Users, s.New) {
		if p := q.Of(pod); p != nil && snapshot.Waits(pod) {
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(pods, compareQueued)
	return pods
}
