// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Events says what happened with a change, as far as people care: claims that got or
// lost devices, devices of pods that are unhealthy, slices and taint rules that came or went,
// nodes with devices that are cordoned, not ready or gone.
func Events(d *cluster.Delta, now time.Time) []Event {
	before, after := d.Before, d.After
	list := slices.Concat(claimEvents(before, after), podEvents(before, after), sliceEvents(before, after), nodeEvents(before, after))
	eachChange(before.TaintRules, after.TaintRules,
		func(was, is *resourceapi.DeviceTaintRule) {
			switch {
			case was == nil:
				list = append(list, event(RuleCreated, "", is.Name, 0, fmt.Sprintf(": %s:%s", is.Spec.Taint.Key, is.Spec.Taint.Effect)))
			case is == nil:
				list = append(list, event(RuleDeleted, "", was.Name, 0, ""))
			}
		})
	for i := range list {
		list[i].At, list[i].Last = now, now
	}
	return list
}

func event(code EventCode, namespace, name string, devices int, detail string) Event {
	full := name
	if namespace != "" {
		full = namespace + "/" + name
	}
	return Event{Code: code, Namespace: namespace, Count: 1, name: full, detail: detail, devices: devices, objects: map[string]string{name: name}}
}

func claimEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	tell := func(code EventCode, claim *resourceapi.ResourceClaim, detail string) {
		n := 0
		if claim.Status.Allocation != nil {
			n = len(claim.Status.Allocation.Devices.Results)
		}
		list = append(list, event(code, claim.Namespace, claim.Name, n, detail))
	}
	eachChange(before.Claims, after.Claims,
		func(was, is *resourceapi.ResourceClaim) {
			switch {
			case was == nil && is.Status.Allocation == nil:
				tell(ClaimCreated, is, "")
			case is == nil && was.Status.Allocation != nil:
				tell(ClaimReleased, was, releasedText(was))
			case is == nil:
				tell(ClaimDeleted, was, "")
			case is.Status.Allocation != nil && (was == nil || was.Status.Allocation == nil):
				tell(ClaimAllocated, is, allocatedText(is))
			case was.Status.Allocation != nil && is.Status.Allocation == nil:
				tell(ClaimDeallocated, was, "")
			}
		})
	return list
}

// podEvents returns the events about the health of devices, as kubelets report it.
func podEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	eachChange(before.Pods, after.Pods,
		func(was, is *corev1.Pod) {
			if was == nil || is == nil || hasUnhealthy(was) == hasUnhealthy(is) {
				return
			}
			code := PodHealthy
			if hasUnhealthy(is) {
				code = PodUnhealthy
			}
			list = append(list, event(code, is.Namespace, is.Name, 0, ""))
		})
	return list
}

// hasUnhealthy reports whether a device of a claim of the pod is unhealthy.
func hasUnhealthy(pod *corev1.Pod) bool {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			for _, of := range statuses[i].AllocatedResourcesStatus {
				if strings.HasPrefix(string(of.Name), "claim:") && slices.ContainsFunc(of.Resources, func(r corev1.ResourceHealth) bool { return r.Health == corev1.ResourceHealthStatusUnhealthy }) {
					return true
				}
			}
		}
	}
	return false
}

// nodeEvents returns the events about nodes with devices.
func nodeEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	var withDevices map[string]bool
	tell := func(code EventCode, name string) {
		if withDevices == nil {
			withDevices = map[string]bool{}
			for _, slice := range slices.Concat(before.Slices, after.Slices) {
				withDevices[ptr.Deref(slice.Spec.NodeName, "")] = true
			}
		}
		if withDevices[name] {
			list = append(list, event(code, "", name, 0, ""))
		}
	}
	eachChange(before.Nodes, after.Nodes,
		func(was, is *corev1.Node) {
			switch {
			case was == nil:
				return
			case is == nil:
				tell(NodeDeleted, was.Name)
				return
			}
			switch {
			case !was.Spec.Unschedulable && is.Spec.Unschedulable:
				tell(NodeCordoned, is.Name)
			case was.Spec.Unschedulable && !is.Spec.Unschedulable:
				tell(NodeUncordoned, is.Name)
			}
			switch {
			case cluster.NotReady(was) == nil && cluster.NotReady(is) != nil:
				tell(NodeBecameNotReady, is.Name)
			case cluster.NotReady(was) != nil && cluster.NotReady(is) == nil:
				tell(NodeBecameReady, is.Name)
			}
		})
	return list
}

func sliceEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	tell := func(code EventCode, slice *resourceapi.ResourceSlice, detail string) {
		n := len(slice.Spec.Devices)
		e := event(code, "", slice.Name, n, detail+", "+english.Count(n, "device"))
		e.objects[slice.Name] = slice.Spec.Driver + "/" + slice.Spec.Pool.Name
		list = append(list, e)
	}
	eachChange(before.Slices, after.Slices,
		func(was, is *resourceapi.ResourceSlice) {
			switch {
			case was == nil:
				tell(SlicePublished, is, "")
			case is == nil:
				tell(SliceRemoved, was, "")
			case was.Spec.Pool.Generation != is.Spec.Pool.Generation:
				tell(SliceRenewed, is, fmt.Sprint(is.Spec.Pool.Generation))
			}
		})
	return list
}

// eachChange tells of each object that came, went or changed, once; an object that was deleted and
// created again under its name went and came.
func eachChange[T interface {
	comparable
	metav1.Object
}](before, after []T, tell func(was, is T)) {
	var none T
	for was, is := range snapshot.Changes(before, after) {
		if was != none && is != none && was.GetUID() != is.GetUID() {
			tell(was, none)
			was = none
		}
		tell(was, is)
	}
}
