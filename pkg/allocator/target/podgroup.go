// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Gang is the outcome for the pods of a PodGroup if they are decided one after another.
type Gang struct {
	// Existing counts the pods that there are, Fit those that have a node or get one.
	Existing, Fit int
	// Above has the CompositePodGroups that it belongs to, the nearest first.
	Above []CompositeFit
}

// Short says of which group too few pods or groups fit, the PodGroup or the nearest
// CompositePodGroup above it; empty if enough do.
func (g *Gang) Short(group string, minCount int) string {
	if g.Fit < minCount {
		return fmt.Sprintf("%d of %s of PodGroup %s fit, minCount is %d", g.Fit, english.Count(g.Existing, "pod"), group, minCount)
	}
	for i := range g.Above {
		if above := &g.Above[i]; above.Fit < above.Tree.MinCount {
			return fmt.Sprintf("%d of %s of CompositePodGroup %s fit, minGroupCount is %d: not enough pods of %s do", above.Fit,
				english.Count(len(above.Tree.Children), "group"), above.Tree.Name(), above.Tree.MinCount, english.Sample(above.Short, 4))
		}
	}
	return ""
}

// CompositeFit is the outcome for the groups of a CompositePodGroup.
type CompositeFit struct {
	Tree *GroupTree
	// Ready counts the groups of which enough pods exist, Fit the groups of which enough
	// have a node or get one.
	Ready, Fit int
	// Short are the names of the groups of which not enough fit.
	Short []string
}

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
