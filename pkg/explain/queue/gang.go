// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// gang is a PodGroup whose pods are placed as a whole or not at all.
type gang struct {
	group *schedulingapi.PodGroup
	// pods are those that wait; placed counts those that have a node.
	pods   []*queuedPod
	placed int
	// decided is set once it was decided, and fit counts the pods that have a node or
	// get one then.
	decided bool
	fit     int
}

func (g *gang) minCount() int { return int(g.group.Spec.SchedulingPolicy.Gang.MinCount) }

// existing counts the pods of the gang.
func (g *gang) existing() int { return g.placed + len(g.pods) }

// fits reports whether enough of the gang have a node or get one.
func (g *gang) fits() bool { return g.fit >= g.minCount() }

// known is what an explanation of one of its pods has to know about it.
func (g *gang) known() *target.Gang {
	if g == nil || !g.decided {
		return nil
	}
	return &target.Gang{Existing: g.existing(), Fit: g.fit}
}

// groupOf returns the PodGroup that a pod is scheduled with, nil for none.
func (q *Queue) groupOf(pod *corev1.Pod) *schedulingapi.PodGroup {
	name := target.GroupOf(pod)
	if name == "" || target.Hypothetical(pod) && !q.alloc.Facts.Gates.Enabled("GenericWorkload") {
		// The API server would drop the field.
		return nil
	}
	return q.snap.PodGroup(pod.Namespace, name)
}

// joinGang makes a pod one that is decided with its gang, if it has one. The other
// pods of that take part. If the scheduler does not try the gang, because its pods
// differ, each is decided alone, and is blocked.
func (q *Queue) joinGang(p *queuedPod) {
	group := q.groupOf(p.pod)
	if p.gang != nil || group == nil || group.Spec.SchedulingPolicy.Gang == nil {
		return
	}
	join := func(p *queuedPod, g *gang) {
		if p.gang == nil {
			p.member, p.gang = true, g
			g.pods = append(g.pods, p)
		}
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	g, known := q.gangs[key]
	if !known {
		pods := target.GroupPods(q.snap, group.Namespace, group.Name)
		if p.hypothetical {
			more, _ := target.NewGroupPods(q.snap, group.Namespace, group.Name)
			pods = append(pods, more...)
		}
		if target.MismatchOf(q.alloc.Facts, group, append(pods, p.pod)) == nil {
			g = &gang{group: group}
		}
		q.gangs[key] = g
		for _, pod := range pods {
			switch {
			case g == nil:
			case pod.Spec.NodeName != "":
				g.placed++
			case lifecycle.Waits(pod):
				join(q.add(target.WithClassPriority(q.snap, pod), target.Hypothetical(pod)), g)
			}
		}
	}
	if g != nil {
		join(p, g)
	}
}

// decideGang decides all pods of a gang, one after another, as the scheduler does
// when the first of them is the next in its queue (pkg/scheduler/schedule_one_podgroup.go
// of Kubernetes v1.37.1). Unless enough of them fit, none of them takes anything from
// the pods that come later.
func (q *Queue) decideGang(ctx context.Context, g *gang) error {
	if g.decided {
		return nil
	}
	g.decided, g.fit = true, g.placed
	before := q.after
	slices.SortStableFunc(g.pods, func(a, b *queuedPod) int { return compareQueued(a.pod, b.pod) })
	for _, p := range g.pods {
		fits, err := q.decideMember(ctx, p)
		if err != nil {
			return err
		}
		if fits {
			g.fit++
		}
	}
	if !g.fits() {
		q.after = before
	}
	return nil
}

// decideMember reports whether a pod has its devices or gets them, which are reserved
// then.
func (q *Queue) decideMember(ctx context.Context, p *queuedPod) (bool, error) {
	if err := q.sortKind(ctx, p); err != nil {
		return false, err
	}
	switch p.kind.answer.Verdict {
	case api.Allocated:
		if !q.planned {
			return true, nil
		}
		fallthrough
	case api.Fits:
		err := q.reserve(ctx, p)
		return p.reservation != nil, err
	default:
		return false, nil
	}
}

// CountFitting counts the pods of a gang that have a node, or get one, if they are
// decided one after another.
func CountFitting(ctx context.Context, explainer Explainer, alloc *allocator.Allocator, snap *snapshot.Snapshot, members []*corev1.Pod) (int, error) {
	q := New(explainer, alloc, snap)
	fit := 0
	members = slices.SortedStableFunc(slices.Values(members), compareQueued)
	for _, pod := range members {
		if pod.Spec.NodeName == "" && lifecycle.Waits(pod) {
			q.add(pod, target.Hypothetical(pod)).member = true
		}
	}
	for _, pod := range members {
		if pod.Spec.NodeName != "" {
			fit++
		} else if p := q.pods[podKey(pod)]; p != nil {
			fits, err := q.decideMember(ctx, p)
			if err != nil {
				return 0, err
			}
			if fits {
				fit++
			}
		}
	}
	return fit, nil
}
