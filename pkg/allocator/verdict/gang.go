// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// newGang returns a gang without pods.
func newGang(tree *target.GroupTree, parent *gang) *gang {
	g := &gang{tree: tree, parent: parent}
	for _, child := range tree.Children {
		g.children = append(g.children, newGang(child, g))
	}
	return g
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

// GroupOf returns the PodGroup that a pod is scheduled with, nil for none.
func (q *Queue) GroupOf(pod *corev1.Pod) *schedulingapi.PodGroup {
	name := target.GroupOf(pod)
	if name == "" || target.Hypothetical(pod) && !q.cluster.Gates.Enabled("GenericWorkload") {
		// The API server would drop the field.
		return nil
	}
	return q.cluster.Snapshot.PodGroup(pod.Namespace, name)
}

// joinGang makes a pod be decided with its gang, if it has one. The other pods of the gang
// take part. If the scheduler does not try the gang, because its pods differ, each is
// decided alone, and is blocked.
func (q *Queue) joinGang(p *Queued) {
	group := q.GroupOf(p.Pod)
	if p.gang != nil || group == nil {
		return
	}
	key := groupKey(group)
	if _, known := q.gangs[key]; !known {
		q.addGang(group, p)
	}
	if g := q.gangs[key]; g != nil {
		g.join(p)
	}
}

func groupKey(group *schedulingapi.PodGroup) types.NamespacedName {
	return types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
}

// join adds a pod to a PodGroup, if it has not joined.
func (g *gang) join(p *Queued) {
	if p.gang == nil {
		p.Member, p.gang = true, g
		g.pods = append(g.pods, p)
	}
}

// addGang adds the gang of a PodGroup with all of its pods; p is its first requested pod.
// If not all groups of it are known, it is the gang of the PodGroup alone. It is nil if the
// scheduler does not try it.
func (q *Queue) addGang(group *schedulingapi.PodGroup, p *Queued) {
	tree, missing := target.TreeOf(q.cluster, group)
	if tree == nil && missing == "" {
		tree = target.Alone(group)
	}
	if tree == nil || !tree.Whole() {
		q.gangs[groupKey(group)] = nil
		return
	}
	var leaves [][]*corev1.Pod
	all := []*corev1.Pod{p.Pod}
	for _, group := range tree.Groups() {
		pods := target.GroupPods(q.cluster.Snapshot, group.Namespace, group.Name)
		if p.Hypothetical {
			more, _ := target.NewGroupPods(q.cluster.Snapshot, group.Namespace, group.Name)
			pods = append(pods, more...)
		}
		leaves, all = append(leaves, pods), append(all, pods...)
	}
	tried := target.MismatchOf(q.cluster, tree, all) == nil
	for i, leaf := range newGang(tree, nil).leaves() {
		key := groupKey(leaf.tree.Group)
		if !tried {
			q.gangs[key] = nil
			continue
		}
		q.gangs[key] = leaf
		for _, pod := range leaves[i] {
			switch {
			case pod.Spec.NodeName != "":
				leaf.placed++
			case snapshot.Waits(pod):
				leaf.join(q.add(target.WithClassPriority(q.cluster.Snapshot, pod), target.Hypothetical(pod)))
			}
		}
	}
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
	q.sortKind(p)
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
	q.joinGang(p)
	if p.gang == nil {
		return nil, nil
	}
	if err := q.decideGang(ctx, p.gang.top()); err != nil {
		return nil, err
	}
	return p.gang.known(), nil
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
	g := q.gangs[groupKey(group)]
	if g == nil {
		return nil
	}
	fit := &GangFit{Existing: g.existing(), Fit: max(g.fit, g.placed)}
	if g.parent != nil {
		fit.Above, fit.Fits = g.found().Above, g.top().decided && g.fits()
	}
	return fit
}
