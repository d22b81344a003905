// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

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

// Gang returns the outcome of a pod's gang once it was decided, nil before, and for pods
// without one.
func (p *Queued) Gang() *target.Gang { return p.gang.known() }

// Group returns the name and the minCount of the PodGroup that a pod is decided with, and
// its outcome so far; nil for none.
func (p *Queued) Group() (name string, minCount int, gang *target.Gang) {
	if p.gang == nil {
		return "", 0, nil
	}
	return p.gang.tree.Name(), p.gang.tree.MinCount, p.gang.found()
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

func podKey(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
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

// reopen makes pods of a kind try a node once again.
func (k *Kind) reopen(node *corev1.Node) {
	if !slices.Contains(k.nodes, node) {
		k.nodes = append(k.nodes, node)
	}
}

// candidate is a node where a pod fits once others have left; nobody if that is yet to be
// found out.
type candidate struct {
	node    *corev1.Node
	victims []*corev1.Pod
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

// newGang returns a gang without pods.
func newGang(tree *target.GroupTree, parent *gang) *gang {
	g := &gang{tree: tree, parent: parent}
	for _, child := range tree.Children {
		g.children = append(g.children, newGang(child, g))
	}
	return g
}

// join adds a pod to a PodGroup, if it has not joined.
func (g *gang) join(p *Queued) {
	if p.gang == nil {
		p.Member, p.gang = true, g
		g.pods = append(g.pods, p)
	}
}

// top returns the group that is decided at the same time as a gang.
func (g *gang) top() *gang {
	for g.parent != nil {
		g = g.parent
	}
	return g
}

// leaves returns the PodGroups in it.
func (g *gang) leaves() []*gang {
	if g.tree.Group != nil {
		return []*gang{g}
	}
	var all []*gang
	for _, child := range g.children {
		all = append(all, child.leaves()...)
	}
	return all
}

// enough reports whether enough of its pods, or groups, have a node or get one.
func (g *gang) enough() bool { return g.fit >= g.tree.MinCount }

// fits reports whether the scheduler places it: enough of it fit, and of all that is
// above it.
func (g *gang) fits() bool { return g.enough() && (g.parent == nil || g.parent.fits()) }

// existing counts the pods of a PodGroup.
func (g *gang) existing() int { return g.placed + len(g.pods) }

// ready reports whether enough pods exist for it to be tried.
func (g *gang) ready() bool {
	if g.tree.Group != nil {
		return g.existing() >= g.tree.MinCount
	}
	return g.readyChildren() >= g.tree.MinCount
}

func (g *gang) readyChildren() int {
	count := 0
	for _, child := range g.children {
		if child.ready() {
			count++
		}
	}
	return count
}

// known returns what an explanation of one of its pods has to know about it.
func (g *gang) known() *target.Gang {
	if g == nil || !g.top().decided {
		return nil
	}
	return g.found()
}

// found returns the results so far.
func (g *gang) found() *target.Gang {
	found := &target.Gang{Existing: g.existing(), Fit: max(g.fit, g.placed)}
	for at := g.parent; at != nil; at = at.parent {
		above := target.CompositeFit{Tree: at.tree, Ready: at.readyChildren(), Fit: at.fit}
		for _, child := range at.children {
			if !child.enough() {
				above.Short = append(above.Short, child.tree.Name())
			}
		}
		found.Above = append(found.Above, above)
	}
	return found
}

// gangs has the gangs of the members of targets.
type gangs struct {
	cluster *cluster.Cluster
	// byGroup has the gangs by their PodGroups, nil for a gang that the scheduler does not
	// try.
	byGroup map[types.NamespacedName]*gang
}

// join makes a pod be decided with its gang, if it has one. The other pods of the gang
// take part, and are added to the queue. If the scheduler does not try the gang, because its
// pods differ, each is decided alone, and is blocked.
func (s *gangs) join(p *Queued, add func(pod *corev1.Pod, hypothetical bool) *Queued) {
	group := GroupOf(s.cluster, p.Pod)
	if p.gang != nil || group == nil {
		return
	}
	key := groupKey(group)
	if _, known := s.byGroup[key]; !known {
		s.create(group, p, add)
	}
	if g := s.byGroup[key]; g != nil {
		g.join(p)
	}
}

// GroupOf returns the PodGroup that a pod is scheduled with, nil for none.
func GroupOf(c *cluster.Cluster, pod *corev1.Pod) *schedulingapi.PodGroup {
	name := target.GroupOf(pod)
	if name == "" || target.Hypothetical(pod) && !c.Gates.Enabled("GenericWorkload") {
		// The API server would drop the field.
		return nil
	}
	return c.Snapshot.PodGroup(pod.Namespace, name)
}

func groupKey(group *schedulingapi.PodGroup) types.NamespacedName {
	return types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
}

// create creates the gang of a PodGroup with all of its pods; p is its first requested pod.
// If not all groups of it are known, it is the gang of the PodGroup alone. It is nil if the
// scheduler does not try it.
func (s *gangs) create(group *schedulingapi.PodGroup, p *Queued, add func(pod *corev1.Pod, hypothetical bool) *Queued) {
	tree, missing := target.TreeOf(s.cluster, group)
	if tree == nil && missing == "" {
		tree = target.Alone(group)
	}
	if tree == nil || !tree.Whole() {
		s.byGroup[groupKey(group)] = nil
		return
	}
	var leaves [][]*corev1.Pod
	all := []*corev1.Pod{p.Pod}
	for _, group := range tree.Groups() {
		pods := target.GroupPods(s.cluster.Snapshot, group.Namespace, group.Name)
		if p.Hypothetical {
			more, _ := target.NewGroupPods(s.cluster.Snapshot, group.Namespace, group.Name)
			pods = append(pods, more...)
		}
		leaves, all = append(leaves, pods), append(all, pods...)
	}
	tried := target.MismatchOf(s.cluster, tree, all) == nil
	for i, leaf := range newGang(tree, nil).leaves() {
		key := groupKey(leaf.tree.Group)
		if !tried {
			s.byGroup[key] = nil
			continue
		}
		s.byGroup[key] = leaf
		for _, pod := range leaves[i] {
			switch {
			case pod.Spec.NodeName != "":
				leaf.placed++
			case snapshot.Waits(pod):
				leaf.join(add(target.WithClassPriority(s.cluster.Snapshot, pod), target.Hypothetical(pod)))
			}
		}
	}
}
