// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestAlignment says what devices of claims have in common, of one claim and of several.
func TestAlignment(t *testing.T) {
	const pcieRoot, numaNode, rail = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode", "net.example.com/rail"
	device := func(name string, attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) resourceapi.Device {
		return resourceapi.Device{Name: name, Attributes: attributes}
	}
	root := func(value string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{StringValue: &value}
	}
	numa := func(values ...int64) resourceapi.DeviceAttribute {
		if len(values) == 1 {
			return resourceapi.DeviceAttribute{IntValue: &values[0]}
		}
		return resourceapi.DeviceAttribute{IntValues: values}
	}
	slice := func(driver string, devices ...resourceapi.Device) *resourceapi.ResourceSlice {
		s := &resourceapi.ResourceSlice{}
		s.Name, s.Spec.Driver, s.Spec.NodeName, s.Spec.Devices = driver, driver, new("n1"), devices
		s.Spec.Pool = resourceapi.ResourcePool{Name: "n1", Generation: 1, ResourceSliceCount: 1}
		return s
	}
	type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	c := cluster.New(&snapshot.Snapshot{Slices: []*resourceapi.ResourceSlice{
		slice("gpu.example.com",
			device("gpu-0", attributes{pcieRoot: root("pci0000:00"), numaNode: numa(0)}),
			device("gpu-1", attributes{pcieRoot: root("pci0000:00"), numaNode: numa(0, 1)}),
			device("gpu-2", attributes{pcieRoot: root("pci0000:80"), numaNode: numa(1)}),
			device("plain", nil)),
		slice("net.example.com",
			device("nic-0", attributes{pcieRoot: root("pci0000:00"), "rail": root("a")}),
			device("nic-1", attributes{pcieRoot: root("pci0000:80"), "rail": root("a")})),
	}})
	claim := func(same string, devices ...string) *resourceapi.ResourceClaim {
		claim := &resourceapi.ResourceClaim{}
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		for _, name := range devices {
			driver := "gpu.example.com"
			if name[0] == 'n' {
				driver = "net.example.com"
			}
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "n1", Device: name})
		}
		if same != "" {
			claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: new(resourceapi.FullyQualifiedName(same))}}
		}
		return claim
	}
	other := claim(rail, "nic-0", "nic-1")
	other.Spec.Devices.Constraints[0].Requests = []string{"another"}
	for name, test := range map[string]struct {
		claims []*resourceapi.ResourceClaim
		want   []string
	}{
		"one device":     {[]*resourceapi.ResourceClaim{claim("", "gpu-0")}, nil},
		"not allocated":  {[]*resourceapi.ResourceClaim{{}}, nil},
		"same, required": {[]*resourceapi.ResourceClaim{claim(pcieRoot, "gpu-0", "gpu-1")}, []string{"aligned by pcieRoot pci0000:00, as required", "aligned by numaNode: 0 (1), 0,1 (1)"}},
		"different":      {[]*resourceapi.ResourceClaim{claim("", "gpu-0", "gpu-2")}, []string{"not aligned by pcieRoot: pci0000:00 (1), pci0000:80 (1)", "not aligned by numaNode: 0 (1), 1 (1)"}},
		"one without":    {[]*resourceapi.ResourceClaim{claim("", "gpu-0", "gpu-1", "plain")}, []string{"not aligned by pcieRoot: pci0000:00 (2), no value (1)", "not aligned by numaNode: 0 (1), 0,1 (1), no value (1)"}},
		"one is gone":    {[]*resourceapi.ResourceClaim{claim("", "gpu-0", "gpu-1", "gpu-9")}, []string{"not aligned by pcieRoot: pci0000:00 (2), no value (1)", "not aligned by numaNode: 0 (1), 0,1 (1), no value (1)"}},
		"none has it":    {[]*resourceapi.ResourceClaim{claim("", "plain", "gpu-9")}, nil},
		"attribute of a driver, for all": {[]*resourceapi.ResourceClaim{claim(rail, "nic-0", "nic-1")}, []string{
			"not aligned by pcieRoot: pci0000:00 (1), pci0000:80 (1)", "aligned by net.example.com/rail a, as required",
		}},
		"required of another request": {[]*resourceapi.ResourceClaim{other}, []string{
			"not aligned by pcieRoot: pci0000:00 (1), pci0000:80 (1)", "aligned by net.example.com/rail a",
		}},
		"two claims": {[]*resourceapi.ResourceClaim{claim(pcieRoot, "gpu-0"), claim("", "nic-0")}, []string{"aligned by pcieRoot pci0000:00"}},
	} {
		var got []string
		for _, a := range AlignmentOf(c, test.claims...) {
			got = append(got, AlignmentText(&a))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
