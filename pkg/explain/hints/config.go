// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// configHints warns of opaque configuration that nobody reads: it is for a driver
// of which the claim has, and can get, no device. Such a thing is valid, because a
// class may have devices of several drivers, and is ignored without a word.
func (h *finder) configHints(ctx context.Context) {
	if h.Cluster.Snapshot.Gap(snapshot.ResourceSlices) != nil {
		return
	}
	seen := map[string]bool{}
	for i := range h.PodClaims {
		pc := &h.PodClaims[i]
		if pc.Claim == nil {
			continue
		}
		for _, c := range lifecycle.OpaqueConfigs(h.Cluster.Snapshot, pc) {
			drivers := driversFor(ctx, h.Question, pc, c.Requests)
			if len(drivers) == 0 || slices.Contains(drivers, c.Opaque.Driver) || seen[c.String()] {
				continue
			}
			seen[c.String()] = true
			devices := "all devices"
			if pc.Claim.Status.Allocation == nil {
				devices = "all devices that the claim can get"
			}
			h.hint(fmt.Sprintf("the configuration for driver %s (%s of %s %s) is ignored: %s are of driver %s%s",
				c.Opaque.Driver, c.Path, c.Object.Kind, c.Object.Name, devices, english.JoinOr(drivers), english.DidYouMean(c.Opaque.Driver, drivers)),
				api.Evidence{Object: c.Object, Path: c.Path + ".opaque.driver", Found: c.Opaque.Driver, Required: english.JoinOr(drivers)})
		}
	}
}

// driversFor lists the drivers of the devices that some requests of a claim, or
// all for none, have and can get: those that their classes select, or name. It is
// empty if that is not known.
func driversFor(ctx context.Context, q *eligibility.Question, pc *cluster.PodClaim, requests []string) []string {
	concerned := func(name string) bool {
		return len(requests) == 0 || slices.ContainsFunc(requests, func(r string) bool {
			return r == name || r == resourceclaim.BaseRequestRef(name) || resourceclaim.BaseRequestRef(r) == name
		})
	}
	found := map[string]bool{}
	if allocation := pc.Claim.Status.Allocation; allocation != nil {
		for i := range allocation.Devices.Results {
			if result := &allocation.Devices.Results[i]; concerned(result.Request) {
				found[result.Driver] = true
			}
		}
	}
	for _, alternatives := range cluster.Requests(pc.Claim) {
		for _, r := range alternatives {
			if !concerned(r.Name) {
				continue
			}
			drivers := classDrivers(ctx, q, r.Class)
			if len(drivers) == 0 && pc.Claim.Status.Allocation == nil {
				return nil
			}
			for _, driver := range drivers {
				found[driver] = true
			}
		}
	}
	return sortedKeys(found)
}

// classDrivers lists the drivers that the selectors of a class name or, if they
// name none, those whose devices they select.
func classDrivers(ctx context.Context, q *eligibility.Question, name string) []string {
	class := q.Cluster.Snapshot.Class(name)
	if class == nil {
		return nil
	}
	found := map[string]bool{}
	for _, s := range class.Spec.Selectors {
		if s.CEL == nil {
			continue
		}
		for _, driver := range q.Selectors.Compile(s.CEL.Expression).Drivers() {
			found[driver] = true
		}
	}
	if len(found) > 0 {
		return sortedKeys(found)
	}
	devices := q.Cluster.Pools.Devices()
	for i := range devices {
		d := &devices[i]
		if !found[d.ID.Driver] && selected(ctx, q.Selectors, class, d) {
			found[d.ID.Driver] = true
		}
	}
	return sortedKeys(found)
}

// selected reports whether the selectors of a class select a device.
func selected(ctx context.Context, selectors *selector.Evaluator, class *resourceapi.DeviceClass, d *cluster.Device) bool {
	for _, s := range class.Spec.Selectors {
		if s.CEL == nil {
			continue
		}
		if !selectors.Evaluate(ctx, selectors.Compile(s.CEL.Expression), d.ID.Driver, d.Device).Matches {
			return false
		}
	}
	return true
}
