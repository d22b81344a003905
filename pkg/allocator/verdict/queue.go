// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Options say how a queue is decided.
type Options struct {
	// Planned asks for everything that becomes of pods: also of those whose claims are allocated.
	Planned bool
	// Preempts has pods that fit nowhere take the place of pods of lower priority, as KEP-5690
	// proposes it. Pods that are created again wait from then on.
	Preempts bool
	// Shares lets pods share a kind if they differ only in names: of their namespaces, of
	// their owners, and of claims that no other pod of Waiting uses. Pods that nobody asks
	// about always do. If Waiting is nil, it is the waiting pods of the cluster.
	Shares  bool
	Waiting []*corev1.Pod
}

// Queue decides pods one after another.
type Queue struct {
	Options
	cluster *cluster.Cluster
	// After is the cluster with the reservations.
	After *cluster.Cluster
	// order has the pods of the queue, the first one first.
	order []*Queued
	pods  map[types.NamespacedName]*Queued
	kinds *podKinds
	gangs *gangs
	// reopened are the nodes where pods have taken the place of others.
	reopened []*corev1.Node
}

// NewQueue returns an empty queue.
func NewQueue(c *cluster.Cluster, opts Options) *Queue {
	return &Queue{
		Options: opts, cluster: c, After: c,
		pods: map[types.NamespacedName]*Queued{}, kinds: newPodKinds(c, opts.Shares, opts.Waiting), gangs: &gangs{cluster: c, byGroup: map[types.NamespacedName]*gang{}},
	}
}

func (q *Queue) add(pod *corev1.Pod, hypothetical bool) *Queued {
	key := podKey(pod)
	if q.pods[key] == nil {
		q.pods[key] = &Queued{Pod: pod, Hypothetical: hypothetical}
		q.order = append(q.order, q.pods[key])
		cluster.SelectedLabels(pod, q.kinds.selected)
	}
	return q.pods[key]
}

// Any reports whether there is a pod in the queue.
func (q *Queue) Any() bool { return len(q.pods) > 0 }

// Of returns a pod of the queue, nil if it is not in it.
func (q *Queue) Of(pod *corev1.Pod) *Queued { return q.pods[podKey(pod)] }

// Pods returns the pods of the queue, the first one first.
func (q *Queue) Pods() []*Queued { return q.order }

// Kinds returns the kinds of the pods in the queue, in its order. Callers that know the
// verdict about a kind pass it to [Queue.Know].
func (q *Queue) Kinds() []*Kind {
	slices.SortStableFunc(q.order, compareQueued)
	var kinds []*Kind
	seen := map[*Kind]bool{}
	for _, p := range q.order {
		if q.kinds.sort(p); !seen[p.Kind] {
			seen[p.Kind] = true
			kinds = append(kinds, p.Kind)
		}
	}
	return kinds
}

// Apart gives each pod of a kind but the first one a kind of its own, and returns these.
func (q *Queue) Apart(kind *Kind) []*Kind {
	var own []*Kind
	for _, p := range q.order {
		if p.Kind == kind && p != kind.First {
			p.Kind = &Kind{First: p}
			own = append(own, p.Kind)
		}
	}
	return own
}

// GangFit is the outcome for a PodGroup in the queue.
type GangFit struct {
	// Existing counts its pods, Fit those that have a node or get one.
	Existing, Fit int
	// Above has the CompositePodGroups that it belongs to, the nearest first, and Fits is set if
	// enough of them fit.
	Above []target.CompositeFit
	Fits  bool
}

// GangOf returns the outcome for a PodGroup, nil if it is no gang that the scheduler tries.
func (q *Queue) GangOf(group *schedulingapi.PodGroup) *GangFit {
	g := q.gangs.byGroup[groupKey(group)]
	if g == nil {
		return nil
	}
	fit := &GangFit{Existing: g.existing(), Fit: max(g.fit, g.placed)}
	if g.parent != nil {
		fit.Above, fit.Fits = g.found().Above, g.top().decided && g.fits()
	}
	return fit
}

// HasDevices reports whether all claims of a pod are allocated.
func (q *Queue) HasDevices(pod *corev1.Pod) bool {
	claims := q.kinds.claimsOf(pod)
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool {
		return pc.Claim == nil || pc.Claim.Status.Allocation == nil || errors.Is(pc.Problem, cluster.ErrClaimNotOwned)
	})
}

// placeable reports whether pods of a kind get a node as long as there are available
// devices.
func (q *Queue) placeable(kind *Kind) bool {
	return kind.Verdict.Outcome == api.Fits || q.Planned && kind.Verdict.Outcome == api.Allocated
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
			before, after := q.cluster.Snapshot.Claim(pod.Namespace, *c.ResourceClaimName), q.After.Snapshot.Claim(pod.Namespace, *c.ResourceClaimName)
			return before != after && after != nil && after.Status.Allocation != nil
		})
}
