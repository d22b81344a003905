// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// change is something that happened while the dashboard looked.
type change struct {
	at   time.Time
	tone look.Tone
	text string
}

// changesKept is how many are remembered.
const changesKept = 100

// changesBetween says what happened between two looks, as far as people care:
// claims that got or lost devices, slices and taint rules that came or went.
// What is the same object in both is not looked at.
func changesBetween(before, after *snapshot.Snapshot, now time.Time) []change {
	var list []change
	tell := func(t look.Tone, format string, args ...any) {
		list = append(list, change{now, t, fmt.Sprintf(format, args...)})
	}
	compare(before.Claims, after.Claims,
		func(c *resourceapi.ResourceClaim) types.UID { return c.UID },
		func(was, is *resourceapi.ResourceClaim) {
			switch {
			case was == nil && is.Status.Allocation == nil:
				tell(look.Plain, "claim %s/%s was created", is.Namespace, is.Name)
			case is == nil && was.Status.Allocation != nil:
				tell(look.Good, "claim %s/%s was deleted, its %s free", was.Namespace, was.Name, devicesAre(len(was.Status.Allocation.Devices.Results)))
			case is == nil:
				tell(look.Plain, "claim %s/%s was deleted", was.Namespace, was.Name)
			case is.Status.Allocation != nil && (was == nil || was.Status.Allocation == nil):
				tell(look.Busy, "claim %s/%s was allocated %s", is.Namespace, is.Name, devicesOf(is))
			case was.Status.Allocation != nil && is.Status.Allocation == nil:
				tell(look.Good, "claim %s/%s was deallocated", is.Namespace, is.Name)
			}
		})
	compare(before.Slices, after.Slices,
		func(s *resourceapi.ResourceSlice) types.UID { return s.UID },
		func(was, is *resourceapi.ResourceSlice) {
			switch {
			case was == nil:
				tell(look.Good, "slice %s was published, %s", is.Name, devices(len(is.Spec.Devices)))
			case is == nil:
				tell(look.Bad, "slice %s was removed, %s", was.Name, devices(len(was.Spec.Devices)))
			case was.Spec.Pool.Generation != is.Spec.Pool.Generation:
				tell(look.Plain, "slice %s is at generation %d, %s", is.Name, is.Spec.Pool.Generation, devices(len(is.Spec.Devices)))
			}
		})
	compare(before.TaintRules, after.TaintRules,
		func(r *resourceapi.DeviceTaintRule) types.UID { return r.UID },
		func(was, is *resourceapi.DeviceTaintRule) {
			switch {
			case was == nil:
				tell(look.Warning, "taint rule %s was created: %s:%s", is.Name, is.Spec.Taint.Key, is.Spec.Taint.Effect)
			case is == nil:
				tell(look.Good, "taint rule %s was deleted", was.Name)
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

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

func devicesAre(n int) string {
	if n == 1 {
		return "device is"
	}
	return fmt.Sprintf("%d devices are", n)
}
