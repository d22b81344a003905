// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Decision is what becomes of one pod of the queue.
type Decision struct {
	Pod *corev1.Pod
	// Answer is for the cluster as it is, before anything was reserved. Equal pods
	// share it: it is about the first one of them.
	Answer *api.Explanation
	// Reservation is what the pod gets, nil if it gets nothing.
	Reservation *whatif.Reservation
	// Before are the pods that get what it could have, if it fits without them.
	Before []*corev1.Pod
	// Group is the name of the PodGroup that it is placed with, empty for none. Gang is
	// what becomes of that, nil if there is none, and MinCount is how many pods of it are
	// placed at the same time.
	Group    string
	Gang     *target.Gang
	MinCount int
	// Preempts are the pods whose place it takes, PreemptedBy is the one that takes its
	// place; see [Queue.Preempt].
	Preempts    []*corev1.Pod
	PreemptedBy *corev1.Pod
	// Undecided is set if the allocator had no answer after others were placed.
	Undecided error
}

// Why says why a pod gets nothing, with the pods that get what it could have or what it
// lacks.
func (d *Decision) Why() (api.Code, string) {
	switch {
	case d.Gang != nil && d.Gang.Short(d.Group, d.MinCount) != "":
		return api.GangIncomplete, english.Sentence(d.Gang.Short(d.Group, d.MinCount))
	case d.Answer.Verdict == api.Fits && len(d.Before) > 0:
		names := make([]string, 0, len(d.Before))
		for _, pod := range d.Before {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
		verb := "get"
		if len(names) == 1 {
			verb = "gets"
		}
		return api.PodsCompete, fmt.Sprintf("%s before it in the queue %s what it could have: %s.", english.Count(len(names), "pod"), verb, english.Sample(names, 3))
	default:
		return d.Answer.Code, d.Answer.Summary
	}
}

// AddWaiting adds pods that wait, of which everything that becomes of them is asked
// for: see [Queue.Decisions].
func (q *Queue) AddWaiting(pods []*corev1.Pod) {
	q.planned = true
	q.ShareAnswers(pods)
	for _, pod := range pods {
		q.addMember(target.WithClassPriority(q.cluster.Snapshot, pod))
	}
}

// ShareAnswers has pods share an answer that differ in nothing but names: those of their
// namespaces, of their owners, and of claims that no other of the pods that wait uses.
func (q *Queue) ShareAnswers(waiting []*corev1.Pod) {
	q.shares, q.claimUsers = true, claimUsers(waiting)
}

// FindOutlook has answers for pods that do not fit say under which conditions they would.
func (q *Queue) FindOutlook() { q.outlook = true }

// Preempt has pods that fit nowhere take the place of pods of lower priority, as KEP-5690
// proposes it. Pods that are created again wait from then on.
func (q *Queue) Preempt() { q.preempts = true }

// DecideAll decides the pods of [Queue.AddWaiting], and then tries those again that
// others may have made room for: a pod that keeps near to other pods, or that shares a
// claim with one.
func (q *Queue) DecideAll(ctx context.Context) error {
	if err := q.Decide(ctx); err != nil {
		return err
	}
	for placed := true; placed; {
		placed = false
		for _, p := range q.order {
			if p.reservation != nil || p.gang != nil || len(p.pod.Spec.SchedulingGates) > 0 || !q.dependsOnOthers(p.pod) || p.kind.answer.Verdict != api.Fits && p.kind.answer.Verdict != api.DoesNotFit {
				continue
			}
			r, err := allocator.Place(ctx, q.after, p.pod, nil)
			if err != nil && ctx.Err() != nil {
				return err
			}
			if r == nil {
				continue
			}
			q.after = q.after.Amended(whatif.Reserve(q.after.Snapshot, *r))
			p.reservation, p.before, placed = r, nil, true
		}
	}
	return nil
}

// dependsOnOthers reports whether one of the pods that were placed can have made room
// for this one.
func (q *Queue) dependsOnOthers(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil || len(pod.Spec.TopologySpreadConstraints) > 0 ||
		slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
			if c.ResourceClaimName == nil {
				return false
			}
			before, after := q.cluster.Snapshot.Claim(pod.Namespace, *c.ResourceClaimName), q.after.Snapshot.Claim(pod.Namespace, *c.ResourceClaimName)
			return before != after && after != nil && after.Status.Allocation != nil
		})
}

// Decisions are what becomes of the pods of [Queue.AddWaiting], in the order of the
// queue, and the cluster after all of that.
func (q *Queue) Decisions() ([]Decision, *cluster.Cluster) {
	var list []Decision
	for _, p := range q.order {
		if !p.decided {
			continue
		}
		d := Decision{Pod: p.pod, Answer: p.kind.answer, Reservation: p.reservation, Undecided: p.undecided, Preempts: p.victims}
		if p.preemptedBy != nil {
			d.PreemptedBy = p.preemptedBy.pod
		}
		for _, other := range p.before {
			d.Before = append(d.Before, other.pod)
		}
		if g := p.gang; g != nil {
			d.Group, d.Gang, d.MinCount = g.tree.Name(), g.found(), g.tree.MinCount
			if !p.gets() {
				d.Reservation = nil
			}
		}
		list = append(list, d)
	}
	return list, q.after
}
