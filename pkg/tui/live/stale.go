// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Change is the difference of two snapshots, as far as explanations depend on it.
type Change struct {
	// all is set if any explanation may depend on something that changed.
	all bool
	// namespaces are the namespaces of changed pods that no explanation in another
	// namespace depends on.
	namespaces map[string]bool
}

// Any reports whether anything changed but time. Versions of objects, and heartbeats of
// nodes, do not count.
func (c *Change) Any() bool { return c.all || len(c.namespaces) > 0 }

// Touches reports whether explanations of pods and claims in a namespace may be wrong.
func (c *Change) Touches(namespace string) bool { return c.all || c.namespaces[namespace] }

// ChangeBetween returns what changed from one snapshot to a later one. Pods change most
// often, and most of that concerns nobody else: that a container became ready, or that a
// pod without claims was created. All else may concern any explanation.
func ChangeBetween(before, after *snapshot.Snapshot) *Change {
	c := &Change{namespaces: map[string]bool{}}
	restBefore, restAfter := *before, *after
	restBefore.Pods, restAfter.Pods = nil, nil
	c.all = !snapshot.Same(&restBefore, &restAfter)
	for was, is := before.Pods, after.Pods; len(was)+len(is) > 0 && !c.all; {
		var one, other *corev1.Pod
		order := 0
		switch {
		case len(was) == 0:
			order = 1
		case len(is) == 0:
			order = -1
		case was[0] != is[0]:
			order = cmp.Or(strings.Compare(was[0].Namespace, is[0].Namespace), strings.Compare(was[0].Name, is[0].Name))
		}
		if order <= 0 {
			one, was = was[0], was[1:]
		}
		if order >= 0 {
			other, is = is[0], is[1:]
		}
		c.pod(one, other)
	}
	return c
}

// pod takes in what became of a pod; one of the two is nil if it came or went.
func (c *Change) pod(was, is *corev1.Pod) {
	switch {
	case was == is:
	case was == nil && isApart(is), is == nil && isApart(was):
		c.namespaces[cmp.Or(was, is).Namespace] = true
	case was == nil || is == nil:
		c.all = true
	case was.UID == is.UID && equality.Semantic.DeepEqual(versionless(was), versionless(is)):
	case was.UID == is.UID && !isComponent(is) && equality.Semantic.DeepEqual(seenByOthers(was), seenByOthers(is)):
		c.namespaces[is.Namespace] = true
	default:
		c.all = true
	}
}

func versionless(pod *corev1.Pod) *corev1.Pod {
	still := *pod
	still.ResourceVersion = ""
	return &still
}

// isComponent reports whether others may need a pod: a driver, or a part of the control
// plane. Explanations depend on their state.
func isComponent(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return pod.Namespace == metav1.NamespaceSystem || owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// isApart reports whether a pod takes nothing that another one could get, and never will
// before it changes: it has no node, and asks for no devices. Its labels decide nothing:
// affinity and spreading are about pods with a node. But some things are known of pods
// alone, such as the priority of a PriorityClass.
func isApart(pod *corev1.Pod) bool {
	extended := func(containers []corev1.Container) bool {
		return slices.ContainsFunc(containers, func(container corev1.Container) bool {
			for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
				for name := range list {
					if strings.Contains(string(name), "/") {
						return true
					}
				}
			}
			return false
		})
	}
	spec := &pod.Spec
	return spec.NodeName == "" && pod.Status.NominatedNodeName == "" && len(spec.ResourceClaims) == 0 && spec.SchedulingGroup == nil &&
		pod.Status.ExtendedResourceClaimStatus == nil && !extended(spec.Containers) && !extended(spec.InitContainers) &&
		spec.Affinity == nil && spec.PriorityClassName == "" && !isComponent(pod)
}

// seenByOthers returns a pod without what only explanations of its own namespace look at:
// what its containers do, whether it is ready, its addresses, and whether it runs already.
// What it takes of its node, which devices fail, and since when it runs, remains.
func seenByOthers(pod *corev1.Pod) *corev1.Pod {
	still := versionless(pod)
	still.Generation = 0
	status := &still.Status
	if status.Phase != corev1.PodSucceeded && status.Phase != corev1.PodFailed {
		status.Phase = corev1.PodRunning
	}
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c corev1.PodCondition) bool {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, corev1.PodReadyToStartContainers:
			return true
		default:
			return false
		}
	})
	status.HostIP, status.HostIPs, status.PodIP, status.PodIPs = "", nil, "", nil
	status.Message, status.Reason = "", ""
	status.ContainerStatuses = lasting(pod.Spec.Containers, status.ContainerStatuses)
	status.InitContainerStatuses = lasting(pod.Spec.InitContainers, status.InitContainerStatuses)
	return still
}

// lasting returns what containers have otherwise than their spec says, without how they do.
// One of which nothing remains is left out.
func lasting(containers []corev1.Container, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for i := range statuses {
		s := &statuses[i]
		at := slices.IndexFunc(containers, func(container corev1.Container) bool { return container.Name == s.Name })
		asSpecified := func(resources corev1.ResourceList) bool {
			return len(resources) == 0 || at >= 0 && equality.Semantic.DeepEqual(resources, containers[at].Resources.Requests)
		}
		if asSpecified(s.AllocatedResources) && (s.Resources == nil || asSpecified(s.Resources.Requests)) && len(s.AllocatedResourcesStatus) == 0 {
			continue
		}
		list = append(list, corev1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources, AllocatedResourcesStatus: s.AllocatedResourcesStatus})
	}
	return list
}
