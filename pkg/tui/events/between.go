// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// Between says what happened between two looks, as far as people care: claims that got or
// lost devices, slices and taint rules that came or went. What is the same object in both
// is not looked at.
func Between(before, after *snapshot.Snapshot, now time.Time) []Event {
	list := claimEvents(before, after)
	list = append(list, sliceEvents(before, after)...)
	compare(before.TaintRules, after.TaintRules,
		func(r *resourceapi.DeviceTaintRule) types.UID { return r.UID },
		func(was, is *resourceapi.DeviceTaintRule) {
			switch {
			case was == nil:
				list = append(list, event(look.Warning, Rule, "", is.Name, 0, "were created", "taint rule %s was created: %s:%s", is.Name, is.Spec.Taint.Key, is.Spec.Taint.Effect))
			case is == nil:
				list = append(list, event(look.Good, Rule, "", was.Name, 0, "were deleted", "taint rule %s was deleted", was.Name))
			}
		})
	for i := range list {
		list[i].At, list[i].Last = now, now
	}
	return list
}

func event(tone look.Tone, kind Kind, namespace, name string, devices int, were, format string, args ...any) Event {
	return Event{
		Tone: tone, Kind: kind, Namespace: namespace, Count: 1, text: fmt.Sprintf(format, args...), were: were,
		devices: devices, objects: map[string]bool{name: true},
	}
}

func claimEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	tell := func(tone look.Tone, claim *resourceapi.ResourceClaim, were, was, more string) {
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
				tell(look.Plain, is, "were created", "was created", "")
			case is == nil && was.Status.Allocation != nil:
				tell(look.Good, was, "were deleted, and DEVICES became free", "was deleted, ", freed(was))
			case is == nil:
				tell(look.Plain, was, "were deleted", "was deleted", "")
			case is.Status.Allocation != nil && (was == nil || was.Status.Allocation == nil):
				tell(look.Busy, is, "were allocated DEVICES", "was allocated ", devicesOf(is))
			case was.Status.Allocation != nil && is.Status.Allocation == nil:
				tell(look.Good, was, "were deallocated, DEVICES", "was deallocated", "")
			}
		})
	return list
}

func sliceEvents(before, after *snapshot.Snapshot) []Event {
	var list []Event
	tell := func(tone look.Tone, slice *resourceapi.ResourceSlice, were, was string) {
		n := len(slice.Spec.Devices)
		list = append(list, event(tone, Slice, "", slice.Spec.Driver+"/"+slice.Spec.Pool.Name, n, were, "slice %s %s, %s", slice.Name, was, devices(n)))
	}
	compare(before.Slices, after.Slices,
		func(s *resourceapi.ResourceSlice) types.UID { return s.UID },
		func(was, is *resourceapi.ResourceSlice) {
			switch {
			case was == nil:
				tell(look.Good, is, "were published, DEVICES", "was published")
			case is == nil:
				tell(look.Bad, was, "were removed, DEVICES", "was removed")
			case was.Spec.Pool.Generation != is.Spec.Pool.Generation:
				tell(look.Plain, is, "have another generation, DEVICES", fmt.Sprintf("is at generation %d", is.Spec.Pool.Generation))
			}
		})
	return list
}

// compare finds what came, went or is another object now.
func compare[T any](before, after []*T, uid func(*T) types.UID, tell func(was, is *T)) {
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
		return "its device is free"
	}
	return "its " + devices(n) + " are free"
}
