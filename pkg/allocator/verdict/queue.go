// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
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
	// claimUsers counts the pods that use a claim by its name.
	claimUsers map[types.NamespacedName]int
	// order has the pods of the queue, the first one first.
	order []*Queued
	pods  map[types.NamespacedName]*Queued
	kinds map[string]*Kind
	// claims has the claims of pods in the cluster as it is, as far as they were asked for.
	claims map[*corev1.Pod][]cluster.PodClaim
	// gangs are the gangs of members of targets, nil for a gang that the scheduler does not
	// try.
	gangs map[types.NamespacedName]*gang
	// selected has the keys of the labels by which pods select other pods.
	selected map[string]bool
	// reopened are the nodes where pods have taken the place of others.
	reopened []*corev1.Node
}

// Queued is a pod of the queue and what becomes of it.
type Queued struct {
	Pod          *corev1.Pod
	Hypothetical bool
	// Kind is the kind that equal pods share, nil until it is known.
	Kind *Kind
	// Asked is set if the pod has to be decided, Target if it is a target by itself; opts
	// are the options of the target.
	Asked, Target bool
	opts          target.Options
	// Member is set if it is decided without the rest of its gang; gang is that which it
	// is decided with, nil for none.
	Member bool
	gang   *gang
	// Reservation is its reservation, nil if it does not fit.
	Reservation *whatif.Reservation
	// Before are the pods that get the devices that it could have, if it fits without them.
	Before []*Queued
	// Undecided is why it is not known whether it fits after others were placed.
	Undecided error
	// Preempts are the pods whose place it takes; PreemptedBy takes the place of this one.
	Preempts    []*corev1.Pod
	PreemptedBy *Queued
}

// Gets reports whether a pod gets a node: in a gang, only if enough of it do.
func (p *Queued) Gets() bool {
	return p.Reservation != nil && (p.gang == nil || p.gang.fits())
}

// Kind has the common facts of pods that are equal to the scheduler.
type Kind struct {
	// First is the pod that was decided for all of them, and Verdict its verdict in the cluster as
	// it is, nil until it is known: without the devices of the question.
	First   *Queued
	Verdict *Verdict
	// key is the signature of the pods.
	key string
	// nodes are the nodes where a pod of the kind may fit after the reservations.
	nodes []*corev1.Node
	// before are the pods that took the last of them.
	before []*Queued
	// candidates are nodes where others can be preempted, the best one first, once
	// searched is set.
	candidates []*candidate
	searched   bool
}

// gang is a PodGroup whose pods are placed as a whole or not at all, or a
// CompositePodGroup with such groups below it.
type gang struct {
	tree *target.GroupTree
	// parent is the CompositePodGroup that it belongs to, nil if there is none, and
	// children are the groups of one.
	parent   *gang
	children []*gang
	// pods are the waiting pods of a PodGroup; placed counts the pods with a node.
	pods   []*Queued
	placed int
	// decided is set once it was decided. Then fit counts the pods that have a node or
	// get one, or the children that have enough such pods.
	decided bool
	fit     int
}

// enough reports whether enough of its pods, or groups, have a node or get one.
func (g *gang) enough() bool { return g.fit >= g.tree.MinCount }

// fits reports whether the scheduler places it: enough of it fit, and of all that is
// above it.
func (g *gang) fits() bool { return g.enough() && (g.parent == nil || g.parent.fits()) }

// candidate is a node where a pod fits once others have left; nobody if that is yet to be
// found out.
type candidate struct {
	node    *corev1.Node
	victims []*corev1.Pod
}

// NewQueue returns an empty queue.
func NewQueue(c *cluster.Cluster, opts Options) *Queue {
	q := &Queue{
		Options: opts, cluster: c, After: c,
		kinds: map[string]*Kind{}, claims: map[*corev1.Pod][]cluster.PodClaim{}, pods: map[types.NamespacedName]*Queued{}, gangs: map[types.NamespacedName]*gang{},
		selected: map[string]bool{},
	}
	waiting := opts.Waiting
	for _, pod := range c.Snapshot.Pods {
		cluster.SelectedLabels(pod, q.selected)
		if opts.Waiting == nil && snapshot.Waits(pod) {
			waiting = append(waiting, pod)
		}
	}
	q.claimUsers = claimUsers(waiting)
	return q
}

// Any reports whether there is a pod in the queue.
func (q *Queue) Any() bool { return len(q.pods) > 0 }

func (q *Queue) add(pod *corev1.Pod, hypothetical bool) *Queued {
	key := podKey(pod)
	if q.pods[key] == nil {
		q.pods[key] = &Queued{Pod: pod, Hypothetical: hypothetical}
		q.order = append(q.order, q.pods[key])
		cluster.SelectedLabels(pod, q.selected)
	}
	return q.pods[key]
}

// Of returns a pod of the queue, nil if it is not in it.
func (q *Queue) Of(pod *corev1.Pod) *Queued { return q.pods[podKey(pod)] }

// Pods returns the pods of the queue, the first one first.
func (q *Queue) Pods() []*Queued { return q.order }

// claimsOf returns the claims of a pod in the cluster as it is, which nobody may change.
func (q *Queue) claimsOf(pod *corev1.Pod) []cluster.PodClaim {
	claims, known := q.claims[pod]
	if !known {
		claims = q.cluster.Claims.OfPod(pod)
		q.claims[pod] = claims
	}
	return claims
}

// reopen makes pods of a kind try a node once again.
func (k *Kind) reopen(node *corev1.Node) {
	if !slices.Contains(k.nodes, node) {
		k.nodes = append(k.nodes, node)
	}
}

// claimUsers counts the pods that use a claim by its name.
func claimUsers(pods []*corev1.Pod) map[types.NamespacedName]int {
	users := map[types.NamespacedName]int{}
	for _, pod := range pods {
		for i := range pod.Spec.ResourceClaims {
			if name := pod.Spec.ResourceClaims[i].ResourceClaimName; name != nil {
				users[types.NamespacedName{Namespace: pod.Namespace, Name: *name}]++
			}
		}
	}
	return users
}

func podKey(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
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

// compareQueued returns the order of the scheduling queue (Less of the plugin
// PrioritySort): the higher priority first, then who was added to the queue first. When
// that was is known to the scheduler alone; here it is when the pod was created. What does
// not exist yet comes last.
func compareQueued(a, b *Queued) int { return comparePods(a.Pod, b.Pod) }

func comparePods(a, b *corev1.Pod) int {
	created := func(pod *corev1.Pod) time.Time {
		if pod.CreationTimestamp.IsZero() {
			return time.Unix(1<<40, 0)
		}
		return pod.CreationTimestamp.Time
	}
	return cmp.Or(
		cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)),
		created(a).Compare(created(b)),
		cmp.Compare(a.Namespace, b.Namespace),
		english.CompareNames(a.Name, b.Name),
	)
}

// placeable reports whether pods of a kind get a node as long as there are available
// devices.
func (q *Queue) placeable(kind *Kind) bool {
	return kind.Verdict.Outcome == api.Fits || q.Planned && kind.Verdict.Outcome == api.Allocated
}

// HasDevices reports whether all claims of a pod are allocated.
func (q *Queue) HasDevices(pod *corev1.Pod) bool {
	claims := q.claimsOf(pod)
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool {
		return pc.Claim == nil || pc.Claim.Status.Allocation == nil || errors.Is(pc.Problem, cluster.ErrClaimNotOwned)
	})
}
