// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestSingleDevices holds the checks of single devices against the allocator.
// A claim for one device fits on a node exactly if a device is eligible there,
// a claim for all of them exactly if all that match are.
func TestSingleDevices(t *testing.T) {
	cases := 4000
	if testing.Short() {
		cases = 400
	}
	counts := map[string]int{}
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		snap := randomCluster(t, random)
		e, err := Explain(t.Context(), snap, Options{Kind: KindClaim, Namespace: namespace, Name: waiting})
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, e)
		request := e.Claims[0].Requests[0]
		counts[string(e.Verdict)]++
		for _, rejection := range request.Rejected {
			counts[string(rejection.Code)]++
		}
		wrong := ""
		switch {
		case e.Verdict == Error:
			// The allocator gives up with or without a look at the devices.
		case e.Verdict == Fits && request.Mode == string(resourceapi.DeviceAllocationModeExactCount) && request.Eligible == 0:
			wrong = "the allocator found a device, the funnel has none"
		case e.Verdict == DoesNotFit && request.Eligible > 0 && request.Mode == string(resourceapi.DeviceAllocationModeExactCount):
			wrong = "the funnel has a device, the allocator found none"
		case e.Verdict == Fits:
			placed := map[string]bool{}
			for _, d := range e.Placement.Claims[0].Devices {
				placed[allocator.DeviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Device}.String()] = true
			}
			for _, id := range request.EligibleDevices {
				delete(placed, id)
			}
			if len(placed) > 0 {
				wrong = fmt.Sprintf("the allocator picks %v, which the funnel rejects", placed)
			}
		}
		if wrong != "" {
			t.Fatalf("seed %d: %s\n%s\nclaim %s\nslices %s", seed, wrong, asJSON(e), asJSON(snap.Claims), asJSON(snap.Slices))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Log(counts)
}

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// randomCluster makes one node with a few devices, other claims that hold some
// of them, and a claim that waits for one device or for all.
func randomCluster(t *testing.T, random *rand.Rand) *snapshot.Snapshot {
	t.Helper()
	maybe := func(percent int) bool { return random.IntN(100) < percent }
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	parts := []part{nodes("n1", "n2")}
	for _, name := range []string{
		"DRAConsumableCapacity", "DRAPartitionableDevices", "DRADeviceTaints", "DRADeviceBindingConditions",
		"DRAFractionalCapacityRange", "DRADeviceCompatibilityGroups", "DRAListTypeAttributes", "DRAOptionalNodeOperations", "DRADerivedAttributes",
	} {
		if maybe(40) {
			parts = append(parts, gate(name, maybe(60)))
		}
	}
	partitioned := maybe(50)
	var list []resourceapi.Device
	for i := range 1 + random.IntN(4) {
		d := device(fmt.Sprintf("gpu-%d", i), withModel(pick("A", "B")))
		if maybe(60) {
			d.Capacity["memory"] = randomCapacity(random)
		}
		if maybe(30) {
			withSharing(&d)
		}
		if maybe(25) {
			withTaint(pick("x", "y"), resourceapi.DeviceTaintEffect(pick("NoSchedule", "NoExecute", "None")))(&d)
		}
		if partitioned && maybe(70) {
			withCounter("board", "slices", pick("1", "2", "3"))(&d)
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
	parts = append(parts, slice("n1", func(s *resourceapi.ResourceSlice) {
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
	}, list...))
	if partitioned {
		parts = append(parts, counters("n1", "board", "slices", pick("2", "4", "5")))
	}
	for i, d := range list {
		switch {
		case d.AllowMultipleAllocations != nil && maybe(50):
			parts = append(parts, sharing(fmt.Sprintf("share-%d", i), "n1", d.Name, "memory", pick("1", "4", "8")))
		case maybe(25):
			parts = append(parts, holding(fmt.Sprintf("hold-%d", i), "n1", d.Name))
		}
	}
	parts = append(parts, claim(waiting, exact("gpu", 1, func(r *resourceapi.ExactDeviceRequest) {
		if maybe(25) {
			all(r)
		}
		if maybe(15) {
			admin(r)
		}
		if maybe(50) {
			where(pick(
				`device.attributes["gpu.example.com"].model == "A"`,
				`has(device.attributes["gpu.example.com"].model) && device.driver == "gpu.example.com"`,
				`"memory" in device.capacity["gpu.example.com"]`,
				`device.capacity["gpu.example.com"].memory.compareTo(quantity("5")) >= 0`,
				`device.attributes["gpu.example.com"].exists(k, k == "model")`,
				`device.allowMultipleAllocations`,
			))(r)
		}
		if maybe(40) {
			wanting("memory", pick("1", "3", "5", "500m", "1500m", "9", "0"))(r)
		}
		if maybe(30) {
			tolerating(pick("x", "y"))(r)
		}
	})))
	snap := cluster(t, parts...)
	if maybe(20) {
		snap.Claims[len(snap.Claims)-1].Spec.Devices.Constraints = same("gpu.example.com/" + pick("model", "root"))
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
