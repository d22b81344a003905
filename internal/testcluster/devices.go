// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Class selects all devices of a driver.
func Class(name, driver string) *resourceapi.DeviceClass {
	return ClassWhere(name, fmt.Sprintf("device.driver == %q", driver))
}

// ClassWhere selects the devices for which the expressions hold.
func ClassWhere(name string, expressions ...string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{Selectors: CELSelectors(expressions...)}}
}

// CELSelectors returns selectors with expressions.
func CELSelectors(expressions ...string) []resourceapi.DeviceSelector {
	list := make([]resourceapi.DeviceSelector, 0, len(expressions))
	for _, expression := range expressions {
		list = append(list, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return list
}

// SliceWrapper is a slice whose methods return changed copies.
type SliceWrapper struct{ *resourceapi.ResourceSlice }

// Slice returns the node's name for its name's prefix, pool and node selection.
func Slice(name, driver, pool string, devices ...DeviceWrapper) SliceWrapper {
	s := SliceWrapper{&resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			Pool:     resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
			NodeName: ptr.To(Node1),
		},
	}}
	for _, d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, d.Device)
	}
	return s
}

// Pool returns one slice with devices of [Driver] on a node. The snapshot gives it a name.
func Pool(node string, devices ...DeviceWrapper) SliceWrapper {
	return Slice("", Driver, node, devices...).OnNode(node)
}

// Change edits the slice.
func (s SliceWrapper) Change(f func(slice *resourceapi.ResourceSlice)) SliceWrapper {
	out := SliceWrapper{s.DeepCopy()}
	f(out.ResourceSlice)
	return out
}

// OnNode returns a slice for one node.
func (s SliceWrapper) OnNode(name string) SliceWrapper {
	return s.Change(func(slice *resourceapi.ResourceSlice) { slice.Spec.NodeName = &name })
}

// OnAllNodes returns a slice for all nodes.
func (s SliceWrapper) OnAllNodes() SliceWrapper {
	return s.Change(func(slice *resourceapi.ResourceSlice) { slice.Spec.NodeName, slice.Spec.AllNodes = nil, ptr.To(true) })
}

// OnNodesWith returns a slice for the nodes whose label has one of the values.
func (s SliceWrapper) OnNodesWith(key string, values ...string) SliceWrapper {
	return s.Change(func(slice *resourceapi.ResourceSlice) {
		slice.Spec.NodeName, slice.Spec.NodeSelector = nil, NodeSelector(key, values...)
	})
}

// PerDevice leaves it to each device for which nodes it is.
func (s SliceWrapper) PerDevice() SliceWrapper {
	return s.Change(func(slice *resourceapi.ResourceSlice) {
		slice.Spec.NodeName, slice.Spec.PerDeviceNodeSelection = nil, ptr.To(true)
	})
}

// Of returns a slice of a pool with so many slices.
func (s SliceWrapper) Of(count int64) SliceWrapper {
	return s.Change(func(slice *resourceapi.ResourceSlice) { slice.Spec.Pool.ResourceSliceCount = count })
}

// Generation sets the generation of the pool.
func (s SliceWrapper) Generation(generation int64) SliceWrapper {
	return s.Change(func(slice *resourceapi.ResourceSlice) { slice.Spec.Pool.Generation = generation })
}

// WithCounters adds a counter set, its counters given as "name=quantity".
func (s SliceWrapper) WithCounters(set string, counters ...string) SliceWrapper {
	return s.Change(func(slice *resourceapi.ResourceSlice) {
		slice.Spec.SharedCounters = append(slice.Spec.SharedCounters, resourceapi.CounterSet{Name: set, Counters: counterMap(counters)})
	})
}

func counterMap(counters []string) map[string]resourceapi.Counter {
	m := map[string]resourceapi.Counter{}
	for _, counter := range counters {
		name, value, _ := strings.Cut(counter, "=")
		m[name] = resourceapi.Counter{Value: resource.MustParse(value)}
	}
	return m
}

// NodeSelector requires a label with one of the values.
func NodeSelector(key string, values ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}
}

// DeviceWrapper is a device whose methods return changed copies.
type DeviceWrapper struct{ resourceapi.Device }

// Device returns a device with attributes and capacities: "model=x" is a string attribute,
// "memory:=40Gi" a capacity.
func Device(name string, properties ...string) DeviceWrapper {
	return DeviceWrapper{resourceapi.Device{
		Name:       name,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}}.With(properties...)
}

// With adds attributes and capacities.
func (d DeviceWrapper) With(properties ...string) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) {
		for _, property := range properties {
			if key, value, ok := strings.Cut(property, ":="); ok {
				device.Capacity[resourceapi.QualifiedName(key)] = resourceapi.DeviceCapacity{Value: resource.MustParse(value)}
				continue
			}
			key, value, _ := strings.Cut(property, "=")
			device.Attributes[resourceapi.QualifiedName(key)] = resourceapi.DeviceAttribute{StringValue: &value}
		}
	})
}

// Devices returns gpu-0 and so on, with the same properties.
func Devices(n int, properties ...string) []DeviceWrapper {
	return Copies(n, Device("", properties...))
}

// Copies of a device have the names gpu-0 and on.
func Copies(n int, device DeviceWrapper) []DeviceWrapper {
	list := make([]DeviceWrapper, 0, n)
	for i := range n {
		list = append(list, device.Change(func(d *resourceapi.Device) { d.Name = fmt.Sprintf("gpu-%d", i) }))
	}
	return list
}

// NamedDevices returns devices with names and nothing else.
func NamedDevices(names ...string) []DeviceWrapper {
	list := make([]DeviceWrapper, 0, len(names))
	for _, name := range names {
		list = append(list, Device(name))
	}
	return list
}

// Change edits the device.
func (d DeviceWrapper) Change(changes ...func(device *resourceapi.Device)) DeviceWrapper {
	out := DeviceWrapper{*d.DeepCopy()}
	for _, change := range changes {
		change(&out.Device)
	}
	return out
}

// WithInt gives the device an attribute that is a number.
func (d DeviceWrapper) WithInt(name string, value int64) DeviceWrapper {
	return d.withAttribute(name, resourceapi.DeviceAttribute{IntValue: &value})
}

// WithBool gives the device an attribute that is true or false.
func (d DeviceWrapper) WithBool(name string, value bool) DeviceWrapper {
	return d.withAttribute(name, resourceapi.DeviceAttribute{BoolValue: &value})
}

// WithInts gives the device an attribute that is a list of numbers.
func (d DeviceWrapper) WithInts(name string, values ...int64) DeviceWrapper {
	return d.withAttribute(name, resourceapi.DeviceAttribute{IntValues: append([]int64{}, values...)})
}

// WithList gives the device an attribute that is a list of strings.
func (d DeviceWrapper) WithList(name string, values ...string) DeviceWrapper {
	return d.withAttribute(name, resourceapi.DeviceAttribute{StringValues: append([]string{}, values...)})
}

func (d DeviceWrapper) withAttribute(name string, value resourceapi.DeviceAttribute) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) { device.Attributes[resourceapi.QualifiedName(name)] = value })
}

// Tainted adds a taint, given as "key" or "key=value".
func (d DeviceWrapper) Tainted(taint string, effect resourceapi.DeviceTaintEffect) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) {
		key, value, _ := strings.Cut(taint, "=")
		device.Taints = append(device.Taints, resourceapi.DeviceTaint{Key: key, Value: value, Effect: effect})
	})
}

// TaintedSince is like Tainted, with the time when the taint was added.
func (d DeviceWrapper) TaintedSince(taint string, effect resourceapi.DeviceTaintEffect, added time.Time) DeviceWrapper {
	return d.Tainted(taint, effect).Change(func(device *resourceapi.Device) {
		device.Taints[len(device.Taints)-1].TimeAdded = &metav1.Time{Time: added}
	})
}

// Consuming takes from a counter set, the counters given as "name=quantity".
func (d DeviceWrapper) Consuming(set string, counters ...string) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) {
		device.ConsumesCounters = append(device.ConsumesCounters, resourceapi.DeviceCounterConsumption{CounterSet: set, Counters: counterMap(counters)})
	})
}

// InGroups sets the compatibility groups of what the device consumes last.
func (d DeviceWrapper) InGroups(groups ...string) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) {
		device.ConsumesCounters[len(device.ConsumesCounters)-1].CompatibilityGroups = groups
	})
}

// Shareable devices can be allocated several times.
func (d DeviceWrapper) Shareable() DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) { device.AllowMultipleAllocations = ptr.To(true) })
}

// BindingOn adds a binding condition.
func (d DeviceWrapper) BindingOn(condition string) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) {
		device.BindingConditions = []string{condition}
		device.BindingFailureConditions = []string{"failed"}
	})
}

// OnNode sets the node of a device in a slice that selects nodes per device.
func (d DeviceWrapper) OnNode(name string) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) { device.NodeName = &name })
}

// TaintRule selects by driver, pool and device; an empty one selects any.
func TaintRule(name, driver, pool, device string) *resourceapi.DeviceTaintRule {
	rule := &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{},
			Taint:          resourceapi.DeviceTaint{Key: name, Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	}
	for _, field := range []struct {
		value  string
		target **string
	}{{driver, &rule.Spec.DeviceSelector.Driver}, {pool, &rule.Spec.DeviceSelector.Pool}, {device, &rule.Spec.DeviceSelector.Device}} {
		if field.value != "" {
			*field.target = &field.value
		}
	}
	return rule
}
