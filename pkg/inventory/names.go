// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// PoolName returns DRIVER/POOL.
func PoolName(p *api.Pool) string { return p.Driver + "/" + p.Name }

// DeviceName returns DRIVER/POOL/DEVICE.
func DeviceName(d *api.Device) string { return d.Driver + "/" + d.Pool + "/" + d.Name }

// TaintText returns KEY=VALUE:EFFECT.
func TaintText(t *api.Taint) string {
	taint := resourceapi.DeviceTaint{Key: t.Key, Value: t.Value, Effect: resourceapi.DeviceTaintEffect(t.Effect)}
	return taint.String()
}

func deviceID(result *resourceapi.DeviceRequestAllocationResult) cluster.DeviceID {
	return cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
}

// poolNode returns the node that all slices of a pool name.
func poolNode(pool *cluster.Pool) string {
	node := ""
	for i, slice := range pool.Slices {
		name := ptr.Deref(slice.Spec.NodeName, "")
		if i > 0 && name != node {
			return ""
		}
		node = name
	}
	return node
}
