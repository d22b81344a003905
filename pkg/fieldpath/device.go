// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldpath says where a fact about a device or a claim stands: in which object of
// the cluster, and in which of its fields. It finds nothing out, and every
// package above pkg/allocator may import it.
package fieldpath

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// ClaimSpec is where a field of a claim's spec stands: in the claim or, where that is yet to
// be created, in the template that it is made from.
func ClaimSpec(claim *resourceapi.ResourceClaim, path string) (object, at string) {
	if template, planned := cluster.IsPlanned(claim); planned && template != "" {
		return whatif.Object(api.KindTemplate, claim.Namespace, template), "spec." + path
	}
	return whatif.ClaimObject(claim), path
}

// Slice names the ResourceSlice that has the device.
func Slice(d *cluster.Device) string { return whatif.Object("ResourceSlice", "", d.Slice.Name) }

// Pool names a pool; in the API, it is only a field of its slices.
func Pool(p *cluster.Pool) string { return whatif.Object("Pool", p.Driver, p.Name) }

// Device is the path of a field of a device in its slice.
func Device(d *cluster.Device, field string) string {
	return fmt.Sprintf("spec.devices[name=%s].%s", d.ID.Device, field)
}

// Counter is the path of a counter in a slice.
func Counter(use cluster.CounterUse) string {
	return fmt.Sprintf("spec.sharedCounters[name=%s].counters[%s]", use.CounterSet, use.Counter)
}

// TaintSource finds the object that a taint comes from, the slice or a rule, and
// the field that has it.
func TaintSource(facts *cluster.Cluster, d *cluster.Device, taint resourceapi.DeviceTaint) (holder, path string) {
	if rule := facts.Taints.Rule(d, taint); rule != nil {
		return whatif.Object("DeviceTaintRule", "", rule.Name), "spec.taint"
	}
	return Slice(d), Device(d, "taints")
}

// TaintEvidence proves that a device has the taint.
func TaintEvidence(facts *cluster.Cluster, d *cluster.Device, taint resourceapi.DeviceTaint) api.Evidence {
	holder, path := TaintSource(facts, d, taint)
	return api.Evidence{Object: holder, Path: path, Found: taint.String()}
}
