// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Between says what happened between two looks, as far as people care: claims that got or
// lost devices, devices of pods that are unhealthy, slices and taint rules that came or went,
// nodes with devices that are cordoned, not ready or gone. What is the same object in both
// is not looked at.
func Between(before, after *snapshot.Snapshot, now time.Time) []Event {
	list := claimEvents(before, after)
	list = append(list, podEvents(before, after)...)
	list = append(list, sliceEvents(before, after)...)
	list = append(list, nodeEvents(before, after)...)
	compare(before.TaintRules, after.TaintRules,
		func(r *resourceapi.DeviceTaintRule) types.UID { return r.UID },
		func(was, is *resourceapi.DeviceTaintRule) {
			switch {
			case was == nil:
				list = append(list, event(widget.Warning, Rule, "", is.Name, 0, "were created", "taint rule %s was created: %s:%s", is.Name, is.Spec.Taint.Key, is.Spec.Taint.Effect))
			case is == nil:
				list = append(list, event(widget.Good, Rule, "", was.Name, 0, "were deleted", "taint rule %s was deleted", was.Name))
			}
		})
	for i := range list {
		list[i].At, list[i].Last = now, now
	}
	return list
}

func event(tone widget.Tone, kind Kind, namespace, name string, devices int, were, format string, args ...any) Event {
	return Event{
		Tone: tone, Kind: kind, Namespace: namespace, Count: 1, text: fmt.Sprintf(format, args...), were: were,
		devices: devices, objects: map[string]string{name: name},
	}
}

func claimEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	tell := func(tone widget.Tone, claim *resourceapi.ResourceClaim, were, was, more string) {
		n := 0
		if claim.Status.Allocation != nil {
			n = len(claim.Status.Allocation.Devices.Results)
		}
		list = append(list, event(tone, Claim, claim.Namespace, claim.Name, n, were, "claim %s/%s %s%s", claim.Namespace, claim.Name, was, more))
	}
	compare(before.Claims, after.Claims,
		func(c *resourceapi.ResourceClaim) types.UID { return c.UID },
		func(was, is *resourceapi.ResourceClaim) {
			switch {
			case was == nil && is.Status.Allocation == nil:
				tell(widget.Plain, is, "were created", "was created", "")
			case is == nil && was.Status.Allocation != nil:
				tell(widget.Good, was, "were deleted, and DEVICES were released", "was deleted, ", freed(was))
			case is == nil:
				tell(widget.Plain, was, "were deleted", "was deleted", "")
			case is.Status.Allocation != nil && (was == nil || was.Status.Allocation == nil):
				tell(widget.Busy, is, "were allocated DEVICES", "was allocated ", devicesOf(is))
			case was.Status.Allocation != nil && is.Status.Allocation == nil:
				tell(widget.Good, was, "were deallocated, DEVICES", "was deallocated", "")
			}
		})
	return list
}

// podEvents are those of the health of devices, as kubelets report it.
func podEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	compare(before.Pods, after.Pods,
		func(p *corev1.Pod) types.UID { return p.UID },
		func(was, is *corev1.Pod) {
			if was == nil || is == nil || hasUnhealthy(was) == hasUnhealthy(is) {
				return
			}
			if hasUnhealthy(is) {
				list = append(list, event(widget.Bad, Pod, is.Namespace, is.Name, 0, "have unhealthy devices", "pod %s/%s has an unhealthy device", is.Namespace, is.Name))
			} else {
				list = append(list, event(widget.Good, Pod, is.Namespace, is.Name, 0, "have healthy devices again", "pod %s/%s has healthy devices again", is.Namespace, is.Name))
			}
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

// nodeEvents are those of nodes with devices.
func nodeEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	var withDevices map[string]bool
	tell := func(tone widget.Tone, name, were, was string) {
		if withDevices == nil {
			withDevices = map[string]bool{}
			for _, slice := range slices.Concat(before.Slices, after.Slices) {
				withDevices[ptr.Deref(slice.Spec.NodeName, "")] = true
			}
		}
		if withDevices[name] {
			list = append(list, event(tone, Node, "", name, 0, were, "node %s %s", name, was))
		}
	}
	compare(before.Nodes, after.Nodes,
		func(n *corev1.Node) types.UID { return n.UID },
		func(was, is *corev1.Node) {
			switch {
			case was == nil:
				return
			case is == nil:
				tell(widget.Bad, was.Name, "were deleted", "was deleted")
				return
			}
			switch {
			case !was.Spec.Unschedulable && is.Spec.Unschedulable:
				tell(widget.Warning, is.Name, "were cordoned", "was cordoned")
			case was.Spec.Unschedulable && !is.Spec.Unschedulable:
				tell(widget.Good, is.Name, "were uncordoned", "was uncordoned")
			}
			switch {
			case isReady(was) && !isReady(is):
				tell(widget.Bad, is.Name, "became not ready", "became not ready")
			case !isReady(was) && isReady(is):
				tell(widget.Good, is.Name, "became ready", "became ready")
			}
		})
	return list
}

func isReady(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

func sliceEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	tell := func(tone widget.Tone, slice *resourceapi.ResourceSlice, were, was string) {
		n := len(slice.Spec.Devices)
		e := event(tone, Slice, "", slice.Name, n, were, "slice %s %s, %s", slice.Name, was, devices(n))
		e.objects[slice.Name] = slice.Spec.Driver + "/" + slice.Spec.Pool.Name
		list = append(list, e)
	}
	compare(before.Slices, after.Slices,
		func(s *resourceapi.ResourceSlice) types.UID { return s.UID },
		func(was, is *resourceapi.ResourceSlice) {
			switch {
			case was == nil:
				tell(widget.Good, is, "were published, DEVICES", "was published")
			case is == nil:
				tell(widget.Bad, was, "were removed, DEVICES", "was removed")
			case was.Spec.Pool.Generation != is.Spec.Pool.Generation:
				tell(widget.Plain, is, "have another generation, DEVICES", fmt.Sprintf("is at generation %d", is.Spec.Pool.Generation))
			}
		})
	return list
}

// compare finds what came, went or is another object now.
func compare[T any](before, after []*T, uid func(*T) types.UID, tell func(was, is *T)) {
	// Lists are in the same order, and nearly all of them is the same.
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	was := make(map[types.UID]*T, len(before))
	for _, object := range before {
		was[uid(object)] = object
	}
	for _, object := range after {
		old := was[uid(object)]
		delete(was, uid(object))
		if old != object {
			tell(old, object)
		}
	}
	for _, object := range before {
		if was[uid(object)] != nil {
			tell(object, nil)
		}
	}
}

func devicesOf(claim *resourceapi.ResourceClaim) string {
	results := claim.Status.Allocation.Devices.Results
	if len(results) == 1 {
		return results[0].Pool + "/" + results[0].Device
	}
	return devices(len(results))
}

// freed says that the devices of a claim are free.
func freed(claim *resourceapi.ResourceClaim) string {
	n := len(claim.Status.Allocation.Devices.Results)
	if n == 1 {
		return "its device was released"
	}
	return "its " + devices(n) + " were released"
}
