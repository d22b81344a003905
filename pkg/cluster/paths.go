// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// ClaimSpecPath returns the object and path of a field of a claim's spec: in the claim or,
// if that does not exist yet, in its template.
func ClaimSpecPath(claim *resourceapi.ResourceClaim, path string) (object api.ObjectRef, at string) {
	if template, planned := IsPlanned(claim); planned && template != "" {
		return api.Ref(api.KindTemplate, claim.Namespace, template), "spec." + path
	}
	return api.RefTo(api.KindClaim, claim), path
}

// SliceObject names the ResourceSlice of the device.
func SliceObject(d *Device) api.ObjectRef { return api.Ref("ResourceSlice", "", d.Slice.Name) }

// PoolObject names a pool; in the API, it is only a field of its slices.
func PoolObject(p *Pool) api.ObjectRef { return api.Ref("Pool", "", p.Driver+"/"+p.Name) }

// DevicePath returns the path of a field of a device in its slice.
func DevicePath(d *Device, field string) string {
	return fmt.Sprintf("spec.devices[name=%s].%s", d.ID.Device, field)
}

// CounterPath returns the path of a counter in a slice.
func CounterPath(use CounterUse) string {
	return fmt.Sprintf("spec.sharedCounters[name=%s].counters[%s]", use.CounterSet, use.Counter)
}

// TaintSource returns the object with a taint, the slice or a rule, and the path.
func TaintSource(facts *Cluster, d *Device, taint resourceapi.DeviceTaint) (holder api.ObjectRef, path string) {
	if rule := facts.Taints.Rule(d, taint); rule != nil {
		return api.Ref("DeviceTaintRule", "", rule.Name), "spec.taint"
	}
	return SliceObject(d), DevicePath(d, "taints")
}

// EvictionSource returns the object with the taint of an eviction, the slice or a rule, and
// the path.
func EvictionSource(facts *Cluster, e *Eviction) (holder api.ObjectRef, path string) {
	if e.Rule == nil {
		return TaintSource(facts, facts.Pools.Device(e.Device), e.Taint)
	}
	return api.Ref("DeviceTaintRule", "", e.Rule.Name), "spec.taint"
}

// TaintEvidence proves that a device has the taint.
func TaintEvidence(facts *Cluster, d *Device, taint resourceapi.DeviceTaint) api.Evidence {
	holder, path := TaintSource(facts, d, taint)
	return api.Evidence{Object: holder, Path: path, Found: taint.String()}
}
