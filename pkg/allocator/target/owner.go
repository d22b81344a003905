// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// findOwner looks for an object of any kind that pods belong to, directly or through
// others, by the owners that pods name: a JobSet, a RayCluster. found is false if no
// pod names it, and the snapshot does not have it either.
func (s *Target) findOwner(c *cluster.Cluster) (found bool, err error) {
	if outline := c.Snapshot.Outline(schema.GroupKind{Group: s.Object.APIGroup, Kind: s.Object.Kind}, s.Object.Namespace, s.Object.Name); outline != nil {
		s.Creator = &lifecycle.Creator{Object: outline, Kind: outline.GroupKind(), Suspended: outline.Spec.Suspend}
		s.Object = outline.Ref()
	}
	pods := s.ownedPods(c.Snapshot)
	if len(pods) == 0 {
		return s.Creator != nil, nil
	}
	chosen := slices.MaxFunc(pods, func(a, b *corev1.Pod) int { return s.urgency(c, a) - s.urgency(c, b) })
	role := roleOf(chosen)
	for _, pod := range pods {
		if roleOf(pod) == role {
			s.Users = append(s.Users, pod)
		} else {
			s.Different = append(s.Different, pod)
		}
	}
	s.Workload, s.ByOwner = true, true
	s.UsePod(c, chosen)
	return true, s.needClaims(c)
}

// urgency returns a higher number for pods that an answer should cover: waiting pods with
// claims, then pods with claims.
func (s *Target) urgency(c *cluster.Cluster, pod *corev1.Pod) int {
	n := 0
	if len(c.Claims.OfPod(pod)) > 0 {
		n = 2
	}
	if snapshot.Waits(pod) {
		n++
	}
	return n
}

// ownedPods lists the pods that have not ended of which the target is an owner, or
// the owner of an owner, by age.
func (s *Target) ownedPods(snap *snapshot.Snapshot) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Namespace != s.Object.Namespace || snapshot.Finished(pod) {
			continue
		}
		for _, owner := range snap.Owners(pod) {
			if kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind); s.isKind(kind) && owner.Name == s.Object.Name {
				s.Object.APIGroup = kind.Group
				pods = append(pods, pod)
				break
			}
		}
	}
	lifecycle.SortPods(pods)
	return pods
}

// roleOf returns the same for pods of one owner with the same needs: pods of one role, such
// as the workers of a cluster but not its head.
func roleOf(pod *corev1.Pod) string {
	type container struct {
		Name      string
		Resources corev1.ResourceRequirements
	}
	spec := &pod.Spec
	role := struct {
		Claims       []corev1.PodResourceClaim
		Containers   []container
		NodeSelector map[string]string
		Scheduler    string
		Priority     *int32
	}{Claims: spec.ResourceClaims, NodeSelector: spec.NodeSelector, Scheduler: spec.SchedulerName, Priority: spec.Priority}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			role.Containers = append(role.Containers, container{containers[i].Name, containers[i].Resources})
		}
	}
	data, err := json.Marshal(role)
	if err != nil {
		// Then it is like no other.
		return pod.Name
	}
	return string(data)
}
