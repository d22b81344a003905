// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"math/rand/v2"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// randomCluster makes one node with a few devices, other claims that hold some
// of them, and a claim that waits for one device or for all.
func randomCluster(t *testing.T, random *rand.Rand) *snapshot.Snapshot {
	t.Helper()
	maybe := func(percent int) bool { return random.IntN(100) < percent }
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	parts := []any{tc.Nodes("n1", "n2")}
	for _, name := range []string{
		"DRAConsumableCapacity", "DRAPartitionableDevices", "DRADeviceTaints", "DRADeviceBindingConditions",
		"DRAFractionalCapacityRange", "DRADeviceCompatibilityGroups", "DRAListTypeAttributes", "DRAOptionalNodeOperations", "DRADerivedAttributes",
	} {
		if maybe(40) {
			parts = append(parts, tc.Gate(name, maybe(60)))
		}
	}
	partitioned := maybe(50)
	var list []tc.DeviceWrapper
	for i := range 1 + random.IntN(4) {
		d := tc.Device(fmt.Sprintf("gpu-%d", i), "model="+pick("A", "B"))
		if maybe(60) {
			d.Capacity["memory"] = randomCapacity(random)
		}
		if maybe(30) {
			d = d.Shareable()
		}
		if maybe(25) {
			d = d.Tainted(pick("x", "y"), resourceapi.DeviceTaintEffect(pick("NoSchedule", "NoExecute", "None")))
		}
		if partitioned && maybe(70) {
			d = d.Consuming("board", "slices="+pick("1", "2", "3"))
			if maybe(30) {
				d.ConsumesCounters[0].CompatibilityGroups = []string{pick("a", "b")}
			}
		}
		if maybe(10) {
			d.BindingConditions = []string{"ready"}
			d.BindingFailureConditions = []string{"broken"}
		}
		list = append(list, d)
	}
	parts = append(parts, tc.Pool("n1", list...).Change(func(s *resourceapi.ResourceSlice) {
		if partitioned {
			s.Spec.Pool.ResourceSliceCount = 2
		}
		if maybe(10) {
			s.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
		}
		if maybe(15) {
			s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, ptr.To(true)
			for i := range s.Spec.Devices {
				s.Spec.Devices[i].NodeName = ptr.To(pick("n1", "n1", "n2", "n3"))
			}
		}
	}))
	if partitioned {
		parts = append(parts, tc.Pool("n1").Of(2).WithCounters("board", "slices="+pick("2", "4", "5")))
	}
	for i, d := range list {
		switch {
		case d.AllowMultipleAllocations != nil && maybe(50):
			parts = append(parts, tc.Sharing(fmt.Sprintf("share-%d", i), "n1", d.Name, "memory", pick("1", "4", "8")))
		case maybe(25):
			parts = append(parts, tc.Serving(fmt.Sprintf("hold-%d", i), "n1", d.Name))
		}
	}
	r := tc.GPUs("gpu", 1)
	if maybe(25) {
		r = r.All()
	}
	if maybe(15) {
		r = r.WithAdminAccess()
	}
	if maybe(50) {
		r = r.Where(pick(
			`device.attributes["gpu.example.com"].model == "A"`,
			`has(device.attributes["gpu.example.com"].model) && device.driver == "gpu.example.com"`,
			`"memory" in device.capacity["gpu.example.com"]`,
			`device.capacity["gpu.example.com"].memory.compareTo(quantity("5")) >= 0`,
			`device.attributes["gpu.example.com"].exists(k, k == "model")`,
			`device.allowMultipleAllocations`,
		))
	}
	if maybe(40) {
		r = r.WithCapacity("memory", pick("1", "3", "5", "500m", "1500m", "9", "0"))
	}
	if maybe(30) {
		r = r.Tolerating(pick("x", "y"))
	}
	snap := tc.Cluster(append(parts, tc.Claim(waiting, r))...)
	if maybe(20) {
		snap.Claims[len(snap.Claims)-1].Spec.Devices.Constraints = []resourceapi.DeviceConstraint{tc.MatchAttribute("gpu.example.com/" + pick("model", "root"))}
	}
	return snap
}

func randomCapacity(random *rand.Rand) resourceapi.DeviceCapacity {
	quantity := func(from ...string) *resource.Quantity {
		return ptr.To(resource.MustParse(from[random.IntN(len(from))]))
	}
	c := resourceapi.DeviceCapacity{Value: *quantity("1", "4", "8", "10")}
	switch random.IntN(4) {
	case 0:
		c.RequestPolicy = &resourceapi.CapacityRequestPolicy{
			Default:     quantity("1", "2", "4"),
			ValidValues: []resource.Quantity{resource.MustParse("1"), resource.MustParse("2"), resource.MustParse("4")},
		}
	case 1:
		c.RequestPolicy = &resourceapi.CapacityRequestPolicy{
			Default:    quantity("1", "2"),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity("1", "500m", "2"), Step: quantity("1", "500m", "2")},
		}
		if random.IntN(2) == 0 {
			c.RequestPolicy.ValidRange.Max = quantity("4", "8")
		}
	case 2:
		c.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: quantity("1", "2")}
	}
	return c
}

// allWaiting asks about all claims that wait, together.
func allWaiting(snap *snapshot.Snapshot) *target.Target {
	s := &target.Target{Options: target.Options{Object: api.Ref(api.KindClaim, "", "")}}
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil {
			s.Claims = append(s.Claims, cluster.PodClaim{Claim: claim})
		}
	}
	return s
}

// crowd turns the waiting claim of a random cluster into something bigger.
func crowd(snap *snapshot.Snapshot, random *rand.Rand) {
	maybe := func(percent int) bool { return random.IntN(100) < percent }
	for _, claim := range snap.Claims {
		if claim.Status.Allocation != nil {
			continue
		}
		base := claim.Spec.Devices.Requests[0]
		for i := range random.IntN(3) {
			r := *base.DeepCopy()
			r.Name = fmt.Sprintf("more-%d", i)
			if maybe(50) {
				r.Exactly.Selectors = nil
			}
			r.Exactly.Count = int64(1 + random.IntN(2))
			r.Exactly.AllocationMode = resourceapi.DeviceAllocationModeExactCount
			if maybe(30) {
				r = tc.FirstAvailable(r.Name, tc.GPUs("a", int64(1+random.IntN(3))), tc.GPUs("b", 1, `device.attributes["gpu.example.com"].model == "B"`)).DeviceRequest
			}
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, r)
		}
		if maybe(40) {
			claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{tc.MatchAttribute("gpu.example.com/model")}
		}
		if maybe(30) {
			claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, tc.DistinctAttribute("gpu.example.com/model"))
			if maybe(50) {
				last := &claim.Spec.Devices.Constraints[len(claim.Spec.Devices.Constraints)-1]
				last.Requests = []string{claim.Spec.Devices.Requests[len(claim.Spec.Devices.Requests)-1].Name}
			}
		}
		if maybe(30) {
			second := claim.DeepCopy()
			second.Name, second.UID = waiting+"-2", "uid-second"
			snap.Claims = append(snap.Claims, second)
			break
		}
	}
	for _, slice := range snap.Slices {
		for i := range slice.Spec.Devices {
			if maybe(10) {
				slice.Spec.Devices[i].Attributes["model"] = resourceapi.DeviceAttribute{StringValues: []string{"A", "B"}}
			}
			if maybe(10) {
				slice.Spec.Devices[i].Attributes["model"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(1))}
			}
		}
	}
}
