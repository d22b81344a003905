// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

const driver = "gpu.example.com"

// listFeatures returns everything enabled that changes what a selector can say.
func listFeatures() dracel.Features {
	return dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
}

// device makes one with room for attributes and capacities.
func device(name string, change ...func(*resourceapi.Device)) resourceapi.Device {
	d := resourceapi.Device{
		Name:       name,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for _, c := range change {
		c(&d)
	}
	return d
}

func with(name string, value resourceapi.DeviceAttribute) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) { d.Attributes[resourceapi.QualifiedName(name)] = value }
}

func text(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}

func number(value int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: &value}
}

func version(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{VersionValue: &value}
}

func asJSON(object any) string {
	data, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// randomExpression makes a boolean expression that reads the values that
// randomDevice makes, and fails only if one of them is missing.
func randomExpression(random *rand.Rand, depth int) string {
	sub := func() string { return randomExpression(random, depth-1) }
	if depth > 0 {
		switch random.IntN(8) {
		case 0, 1:
			return fmt.Sprintf("(%s) && (%s)", sub(), sub())
		case 2:
			return fmt.Sprintf("(%s) || (%s)", sub(), sub())
		case 3:
			return fmt.Sprintf("!(%s)", sub())
		case 4:
			return fmt.Sprintf("(%s ? %s : %s)", parenthesized(sub(), bindsTernary, bindsTight), parenthesized(sub(), bindsTernary, bindsTight), sub())
		}
	}
	return randomAtom(random)
}

func randomAtom(random *rand.Rand) string {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	attribute := func(name string) string {
		domain := pick(driver, driver, driver, "other.example.com")
		switch random.IntN(4) {
		case 0:
			return fmt.Sprintf("device.attributes[%q][%q]", domain, name)
		default:
			return fmt.Sprintf("device.attributes[%q].%s", domain, name)
		}
	}
	comparison := pick("==", "!=", "<", ">=")
	number := fmt.Sprint(random.IntN(3))
	switch random.IntN(12) {
	case 0:
		return fmt.Sprintf("device.driver %s %q", pick("==", "!="), pick(driver, "other"))
	case 1:
		return fmt.Sprintf("%s %s %q", attribute("model"), pick("==", "!="), pick("A", "B"))
	case 2, 3:
		return fmt.Sprintf("%s %s %s", attribute(pick("a", "b")), comparison, number)
	case 4:
		return fmt.Sprintf("%s %s %s", attribute("a"), comparison, attribute("b"))
	case 5:
		return attribute("flag")
	case 6:
		return fmt.Sprintf("has(device.attributes[%q].%s)", driver, pick("a", "b", "flag"))
	case 7:
		return fmt.Sprintf("%q in device.attributes[%q]", pick("a", "b"), driver)
	case 8:
		return fmt.Sprintf("device.capacity[%q].memory.compareTo(quantity(%q)) %s 0", driver, pick("1Gi", "2Gi"), comparison)
	case 9:
		return fmt.Sprintf("%s.%s(v, v %s %s)", attribute("list"), pick("exists", "all"), comparison, number)
	case 10:
		return fmt.Sprintf("device.attributes[%q].?%s.orValue(%s) %s %s", driver, pick("a", "b"), number, comparison, number)
	default:
		return fmt.Sprintf("[0, 1].exists(v, v %s %s)", comparison, attribute("b"))
	}
}

// randomDevice returns some of the values that random expressions read.
func randomDevice(random *rand.Rand) resourceapi.Device {
	maybe := func() bool { return random.IntN(3) > 0 }
	d := device("gpu-0")
	set := func(name string, value resourceapi.DeviceAttribute) {
		if maybe() {
			d.Attributes[resourceapi.QualifiedName(name)] = value
		}
	}
	number := func() *int64 { return ptr.To(int64(random.IntN(3))) }
	set("model", resourceapi.DeviceAttribute{StringValue: ptr.To([]string{"A", "B"}[random.IntN(2)])})
	set("a", resourceapi.DeviceAttribute{IntValue: number()})
	set(driver+"/b", resourceapi.DeviceAttribute{IntValue: number()})
	set("other.example.com/a", resourceapi.DeviceAttribute{IntValue: number()})
	set("flag", resourceapi.DeviceAttribute{BoolValue: ptr.To(random.IntN(2) == 0)})
	set("list", resourceapi.DeviceAttribute{IntValues: []int64{*number(), *number()}})
	if maybe() {
		d.Capacity["memory"] = resourceapi.DeviceCapacity{Value: resource.MustParse([]string{"1Gi", "2Gi", "4Gi"}[random.IntN(3)])}
	}
	return d
}
