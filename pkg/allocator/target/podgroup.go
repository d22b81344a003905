// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// GroupOf returns the name of the PodGroup that a pod belongs to, empty if there is none.
func GroupOf(pod *corev1.Pod) string {
	if pod.Spec.SchedulingGroup == nil {
		return ""
	}
	return ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "")
}

// GroupPods lists the pods of a PodGroup that have not ended, the oldest first.
func GroupPods(snap *snapshot.Snapshot, namespace, name string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Namespace == namespace && GroupOf(pod) == name && !snapshot.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	lifecycle.SortPods(pods)
	return pods
}

// NewGroupPods returns the pods that workloads without pods will create in a PodGroup. If
// sample is set, it is not known how many there will be.
func NewGroupPods(snap *snapshot.Snapshot, namespace, name string) (pods []*corev1.Pod, sample bool) {
	for _, w := range snap.Workloads {
		if w.Namespace != namespace || w.End != nil || GroupOf(&corev1.Pod{Spec: w.Template.Spec}) != name || len(lifecycle.Pods(snap, w)) > 0 {
			continue
		}
		of, one := replicas(podOf(snap, w), w.Replicas)
		pods, sample = append(pods, of...), sample || one
	}
	return pods, sample
}

// Pods lists the pods of all groups that have not ended.
func (t *GroupTree) Pods(snap *snapshot.Snapshot) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, group := range t.Groups() {
		pods = append(pods, GroupPods(snap, group.Namespace, group.Name)...)
	}
	return pods
}

// findPodGroup makes the target stand for the pods of a PodGroup, and for those that
// workloads without pods will create in it.
func (s *Target) findPodGroup(c *cluster.Cluster) error {
	group := c.Snapshot.PodGroup(s.Object.Namespace, s.Object.Name)
	if group == nil {
		return notFound(c.Snapshot, s.Object, snapshot.ResourcePodGroups, c.Snapshot.PodGroups)
	}
	s.Group, s.Workload = group, true
	s.Users = GroupPods(c.Snapshot, group.Namespace, group.Name)
	s.New, s.Sample = NewGroupPods(c.Snapshot, group.Namespace, group.Name)
	if len(s.New) > 0 && !s.Sample {
		s.Desired = ptr.To(int32(len(s.Users) + len(s.New)))
	}
	all := slices.Concat(s.Users, s.New)
	if len(all) == 0 {
		err := &Error{Target: s.Object, Message: fmt.Sprintf("%s has no pods", s.Object.Title())}
		err.Hint = "create pods with spec.schedulingGroup.podGroupName: " + group.Name
		if gap := c.Snapshot.Gap(snapshot.ResourcePods); gap != nil {
			err.Hint = "it may have pods all the same: " + gap.Reason
		}
		return err
	}
	uses := func(pod *corev1.Pod) bool { return len(c.Claims.OfPod(pod)) > 0 }
	chosen := slices.IndexFunc(all, func(pod *corev1.Pod) bool { return snapshot.Waits(pod) && uses(pod) })
	if chosen < 0 {
		chosen = max(slices.IndexFunc(all, uses), 0)
	}
	s.Hypothetical = Hypothetical(all[chosen])
	s.UsePod(c, all[chosen])
	return s.needClaims(c)
}
