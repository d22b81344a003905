// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func (g *generator) device(withCounters bool) resourceapi.Device {
	id := len(g.published)*7 + g.IntN(7)
	for slices.ContainsFunc(g.published, func(p published) bool { return p.device.Name == deviceName(id) }) {
		id++
	}
	d := resourceapi.Device{
		Name: deviceName(id),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"id":                              {IntValue: ptr.To(int64(id))},
			"numa":                            {IntValue: ptr.To(int64(g.IntN(3)))},
			"resource.kubernetes.io/pcieRoot": {StringValue: ptr.To(g.pick("r0", "r1"))},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: g.quantity("4", "8", "10")}},
	}
	// Taken at once, so that the name of the next one differs.
	g.published = append(g.published, published{device: &resourceapi.Device{Name: d.Name}})
	if g.chance(92) {
		d.Attributes["model"] = resourceapi.DeviceAttribute{StringValue: ptr.To(g.pick("A", "A", "B"))}
	}
	if g.with(ListAttributes, 60) {
		d.Attributes["model"] = resourceapi.DeviceAttribute{StringValues: slices.Compact([]string{g.pick("A", "B"), g.pick("B", "C")})}
	}
	if g.with(ListAttributes, 60) {
		d.Attributes["resource.kubernetes.io/pcieRoot"] = resourceapi.DeviceAttribute{StringValues: slices.Compact([]string{g.pick("r0", "r1"), g.pick("r1", "r2")})}
	}
	if g.with(ListAttributes, 15) {
		d.Attributes["model"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(1))}
	}
	if g.with(ListAttributes, 40) {
		d.Attributes["numa"] = resourceapi.DeviceAttribute{IntValues: slices.Compact([]int64{int64(g.IntN(2)), int64(1 + g.IntN(2))})}
	}
	if g.with(RequestPolicies, 80) {
		d.Capacity["memory"] = g.policed(d.Capacity["memory"])
	}
	if g.with(Shares, 70) {
		d.AllowMultipleAllocations = ptr.To(true)
		if g.chance(30) {
			d.Capacity["lanes"] = resourceapi.DeviceCapacity{Value: g.quantity("1", "2", "1500m")}
		}
	}
	if g.with(Taints, 65) {
		d.Taints = []resourceapi.DeviceTaint{{Key: g.pick("x", "y"), Effect: resourceapi.DeviceTaintEffect(g.pick("NoSchedule", "NoExecute", "None"))}}
	}
	if withCounters && g.chance(80) {
		use := resourceapi.DeviceCounterConsumption{
			CounterSet: "board", Counters: map[string]resourceapi.Counter{"units": {Value: g.quantity("1", "2", "3")}},
		}
		if g.on[CompatibilityGroups] {
			// Else it is the counters that do not suffice.
			use.Counters["units"] = resourceapi.Counter{Value: resource.MustParse("1")}
		}
		if g.with(CompatibilityGroups, 85) {
			use.CompatibilityGroups = slices.Compact([]string{g.pick("g", "h"), g.pick("h", "i")})
		}
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{use}
	}
	if g.with(BindingConditions, 60) {
		d.BindingConditions, d.BindingFailureConditions = []string{"ready"}, []string{"broken"}
	}
	return d
}

func deviceName(id int) string { return fmt.Sprintf("dev-%02d", id) }

// policed adds a request policy to a capacity.
func (g *generator) policed(c resourceapi.DeviceCapacity) resourceapi.DeviceCapacity {
	standard := g.quantity("1", "2")
	c.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: &standard}
	switch g.IntN(3) {
	case 0:
		c.RequestPolicy.ValidValues = []resource.Quantity{resource.MustParse("1"), resource.MustParse("2"), resource.MustParse("4")}
	case 1:
		c.RequestPolicy.ValidRange = &resourceapi.CapacityRequestPolicyRange{
			Min: ptr.To(g.quantity("1", "500m", "2")), Step: ptr.To(g.quantity("1", "500m", "2")),
		}
		if g.chance(50) {
			c.RequestPolicy.ValidRange.Max = ptr.To(g.quantity("2", "4"))
		}
	}
	return c
}
