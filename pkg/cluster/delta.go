// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Delta is the change from one snapshot to another one: to a later one of the same cluster, or
// to a what-if snapshot. Snapshots share the objects that did not change, so that a Delta
// compares pointers, and looks into objects only where the pointers differ. It is safe for
// concurrent use.
type Delta struct {
	Before, After *snapshot.Snapshot
	reach         func() reach
}

// Between returns the change from one snapshot to another one. It takes no time until somebody
// asks for a part of it.
func Between(before, after *snapshot.Snapshot) *Delta {
	d := &Delta{Before: before, After: after}
	d.reach = sync.OnceValue(d.findReach)
	return d
}

// Then returns the change from before this one to a later snapshot. It may affect the answers that
// one of both changes may affect, so that only the later change is looked at.
func (d *Delta) Then(after *snapshot.Snapshot) *Delta {
	earlier, later := d.reach(), Between(d.After, after).reach()
	both := reach{all: earlier.all || later.all, namespaces: maps.Clone(earlier.namespaces)}
	maps.Copy(both.namespaces, later.namespaces)
	return &Delta{Before: d.Before, After: after, reach: func() reach { return both }}
}

// Any reports whether anything changed that an answer may depend on. Time, resource versions,
// heartbeats of nodes and, for most pods, whether they are ready do not count.
func (d *Delta) Any() bool { return d.reach().all || len(d.reach().namespaces) > 0 }

// Touches reports whether the change may affect answers about pods and claims in a namespace.
func (d *Delta) Touches(namespace string) bool {
	return d.reach().all || d.reach().namespaces[namespace]
}

// reach tells which answers a change may affect.
type reach struct {
	// all is set if the change may affect any answer.
	all bool
	// namespaces are the namespaces of changed pods that affect no answer in another
	// namespace.
	namespaces map[string]bool
}

// findReach finds out which answers the change may affect. Pods change most often, and most of
// that concerns nobody else: a container became ready, or a pod without claims was created.
// Everything else may affect any answer.
func (d *Delta) findReach() reach {
	r := reach{all: !d.sameBesidesPods(), namespaces: map[string]bool{}}
	if r.all {
		return r
	}
	for was, is := range snapshot.Changes(d.Before.Pods, d.After.Pods) {
		if r.pod(was, is); r.all {
			break
		}
	}
	return r
}

// sameBesidesPods reports whether the snapshots are equal but for pods, the time when they were
// taken, resource versions, and the heartbeats of nodes.
func (d *Delta) sameBesidesPods() bool {
	one, other := reflect.ValueOf(d.Before).Elem(), reflect.ValueOf(d.After).Elem()
	for i := range one.NumField() {
		switch one.Type().Field(i).Name {
		case "Clock", "Pods":
			continue
		}
		if !sameField(one.Field(i), other.Field(i)) {
			return false
		}
	}
	return d.Before.AbsoluteTimes == d.After.AbsoluteTimes
}

// pod adds the change of a pod, which was or is nil if it came or went.
func (r *reach) pod(was, is *corev1.Pod) {
	switch {
	case was == nil && isApart(is):
		r.namespaces[is.Namespace] = true
	case is == nil && isApart(was):
		r.namespaces[was.Namespace] = true
	case was == nil || is == nil:
		r.all = true
	case was.UID == is.UID && sameButReady(was, is):
	case proves(is) && !proves(was):
		r.all = true
	case was.UID == is.UID && !isComponent(is) && equality.Semantic.DeepEqual(seenByOthers(was), seenByOthers(is)):
		r.namespaces[is.Namespace] = true
	default:
		r.all = true
	}
}

// proves reports whether a message of the scheduler about a pod tells how the scheduler of the
// cluster behaves.
func proves(pod *corev1.Pod) bool {
	_, proof := behaviorProvedBy(scheduled(pod).Message)
	return proof
}

// sameButReady reports whether a pod changed at most in its version and in whether it is ready.
// That a driver, a part of the control plane or a pod of a StatefulSet is ready counts: the others
// of a StatefulSet wait for it.
func sameButReady(was, is *corev1.Pod) bool {
	if owner := metav1.GetControllerOfNoCopy(is); isComponent(is) || owner != nil && owner.Kind == "StatefulSet" {
		return equality.Semantic.DeepEqual(versionless(was), versionless(is))
	}
	return equality.Semantic.DeepEqual(readyless(was), readyless(is))
}

// readyless returns a pod without its version, and without whether it and its containers are
// ready.
func readyless(pod *corev1.Pod) *corev1.Pod {
	still := versionless(pod)
	still.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady || c.Type == corev1.ContainersReady
	})
	for _, list := range []*[]corev1.ContainerStatus{&still.Status.InitContainerStatuses, &still.Status.ContainerStatuses} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Ready = false
		}
	}
	return still
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
// A container status of which nothing remains is left out.
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

func sameField(a, b reflect.Value) bool {
	if a.Kind() != reflect.Slice || a.Type().Elem().Kind() != reflect.Pointer {
		return equality.Semantic.DeepEqual(a.Interface(), b.Interface())
	}
	if a.Len() != b.Len() {
		return false
	}
	if a.UnsafePointer() == b.UnsafePointer() {
		return true
	}
	for i := range a.Len() {
		x, y := a.Index(i), b.Index(i)
		if x.Pointer() != y.Pointer() && !equality.Semantic.DeepEqual(timeless(x.Interface()), timeless(y.Interface())) {
			return false
		}
	}
	return true
}

// timeless returns an object without its version and, for a node, without its heartbeats.
// The object itself stays as it is.
func timeless(object any) any {
	if node, ok := object.(*corev1.Node); ok {
		still := *node
		still.Status.Conditions = make([]corev1.NodeCondition, len(node.Status.Conditions))
		for i, condition := range node.Status.Conditions {
			condition.LastHeartbeatTime = metav1.Time{}
			still.Status.Conditions[i] = condition
		}
		still.ResourceVersion = ""
		return &still
	}
	value := reflect.ValueOf(object).Elem()
	if value.Kind() != reflect.Struct || !value.FieldByName("ObjectMeta").IsValid() {
		return object
	}
	still := reflect.New(value.Type())
	still.Elem().Set(value)
	if meta, ok := still.Interface().(metav1.Object); ok {
		meta.SetResourceVersion("")
	}
	return still.Interface()
}

// scheduled returns the condition PodScheduled of a pod, the zero value if it has none.
func scheduled(pod *corev1.Pod) corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if at < 0 {
		return corev1.PodCondition{}
	}
	return pod.Status.Conditions[at]
}
