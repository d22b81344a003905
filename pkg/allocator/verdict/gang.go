// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
