// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// unmatched lists the allocated claims with devices that a changed class no longer
// selects.
func unmatched(ctx context.Context, before, after *cluster.Cluster) []api.ImpactClaim {
	changed := map[string]*resourceapi.DeviceClass{}
	for _, class := range after.Snapshot.Classes {
		if old := before.Snapshot.Class(class.Name); old != nil && !equality.Semantic.DeepEqual(old.Spec.Selectors, class.Spec.Selectors) {
			changed[class.Name] = class
		}
	}
	var list []api.ImpactClaim
	for _, claim := range before.Snapshot.Claims {
		if claim.Status.Allocation == nil || len(changed) == 0 {
			continue
		}
		for _, alternatives := range cluster.Requests(claim) {
			for _, request := range alternatives {
				class := changed[request.Class]
				if class == nil {
					continue
				}
				if devices := unselected(ctx, before, after, claim, request, class); len(devices) > 0 {
					list = append(list, api.ImpactClaim{Namespace: claim.Namespace, Name: claim.Name, DeviceClass: class.Name, Devices: devices, Pods: podsOf(claim)})
				}
			}
		}
	}
	return list
}

// unselected lists the devices of a request that its class does not select after the
// change, and did before.
func unselected(ctx context.Context, before, after *cluster.Cluster, claim *resourceapi.ResourceClaim, request *cluster.Request, class *resourceapi.DeviceClass) []string {
	var devices []string
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		device := after.Pools.Device(cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device})
		if result.Request != request.Name || device == nil {
			continue
		}
		if selects(ctx, before, before.Snapshot.Class(class.Name), device) && !selects(ctx, after, class, device) {
			devices = append(devices, device.ID.String())
		}
	}
	return devices
}

// selects reports whether all selectors of a class are true for a device.
func selects(ctx context.Context, facts *cluster.Cluster, class *resourceapi.DeviceClass, device *cluster.Device) bool {
	selectors := facts.Gates.Selectors()
	return !slices.ContainsFunc(class.Spec.Selectors, func(s resourceapi.DeviceSelector) bool {
		if s.CEL == nil {
			return false
		}
		compiled := selectors.Compile(s.CEL.Expression)
		return compiled.Err != nil || !selectors.Evaluate(ctx, compiled, device.ID.Driver, device.Device).Matches
	})
}

func podsOf(claim *resourceapi.ResourceClaim) []string {
	var pods []string
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.APIGroup == "" && consumer.Resource == "pods" {
			pods = append(pods, consumer.Name)
		}
	}
	return pods
}
