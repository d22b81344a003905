// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Names that the builders use where none is given, and that most tests use.
const (
	DriverA = "a.example.com"
	DriverB = "b.example.com"
	ClassA  = "class-a"
	ClassB  = "class-b"
	Node1   = "node-1"
	Node2   = "node-2"
)

// Snapshot builds a snapshot from objects of any kind. All gates but
// the one for the whole API are off unless named with [Gates].
func Snapshot(objects ...any) *snapshot.Snapshot {
	s := &snapshot.Snapshot{ServerVersion: "v1.37.1", Gates: map[string]snapshot.Gate{}}
	for _, name := range snapshot.KnownGates() {
		if name != "DynamicResourceAllocation" {
			s.Gates[name] = snapshot.Gate{Source: snapshot.GateFromFlag}
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case Gates:
			for _, name := range o {
				s.Gates[name] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
			}
		case SliceWrapper:
			s.Slices = append(s.Slices, o.ResourceSlice)
		case ClaimWrapper:
			s.Claims = append(s.Claims, o.ResourceClaim)
		case *resourceapi.DeviceClass:
			s.Classes = append(s.Classes, o)
		case *resourceapi.DeviceTaintRule:
			s.TaintRules = append(s.TaintRules, o)
		case *resourceapi.ResourceClaimTemplate:
			s.Templates = append(s.Templates, o)
		case *corev1.Node:
			s.Nodes = append(s.Nodes, o)
		case *corev1.Pod:
			s.Pods = append(s.Pods, o)
		case snapshot.Gap:
			s.Gaps = append(s.Gaps, o)
		default:
			panic(fmt.Sprintf("unknown object %T", object))
		}
	}
	SortObjects(s.Slices)
	SortObjects(s.Claims)
	SortObjects(s.Classes)
	SortObjects(s.TaintRules)
	SortObjects(s.Templates)
	SortObjects(s.Nodes)
	SortObjects(s.Pods)
	return s
}

// SortObjects sorts as a server lists: by namespace and name.
func SortObjects[T metav1.Object](list []T) {
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
}

// Gates are the names of feature gates that are on.
type Gates []string

// StableGates are all that the stable allocator implements.
func StableGates() Gates {
	return Gates{"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints"}
}

// IncubatingGates are all that the incubating allocator implements.
func IncubatingGates() Gates {
	return append(StableGates(), "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
}

// ExperimentalGates are all that the experimental allocator implements.
func ExperimentalGates() Gates {
	return append(IncubatingGates(), "DRAListTypeAttributes", "DRADeviceCompatibilityGroups", "DRADerivedAttributes", "DRAOptionalNodeOperations")
}

// Channels are sets of gates that select each of the implementations, with
// everything on that they know, and with nothing on.
func Channels() map[string]Gates {
	return map[string]Gates{
		"nothing":      nil,
		"stable":       StableGates(),
		"incubating":   IncubatingGates(),
		"experimental": ExperimentalGates(),
	}
}

// Class selects all devices of a driver.
func Class(name, driver string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{CELSelector(fmt.Sprintf("device.driver == %q", driver))}},
	}
}

// CELSelector is a selector with an expression.
func CELSelector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

// Node has labels, given as "key=value".
func Node(name string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		n.Labels[key] = value
	}
	return n
}

// SliceWrapper is a slice whose methods return changed copies.
type SliceWrapper struct{ *resourceapi.ResourceSlice }

// Slice has the node's name for its name's prefix, pool and node selection.
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

// Change edits the spec of the slice.
func (s SliceWrapper) Change(f func(spec *resourceapi.ResourceSliceSpec)) SliceWrapper {
	out := SliceWrapper{s.DeepCopy()}
	f(&out.Spec)
	return out
}

// OnNode is a slice for one node.
func (s SliceWrapper) OnNode(name string) SliceWrapper {
	return s.Change(func(spec *resourceapi.ResourceSliceSpec) { spec.NodeName = &name })
}

// OnAllNodes is a slice for all nodes.
func (s SliceWrapper) OnAllNodes() SliceWrapper {
	return s.Change(func(spec *resourceapi.ResourceSliceSpec) { spec.NodeName, spec.AllNodes = nil, ptr.To(true) })
}

// OnNodesWith is a slice for the nodes whose label has one of the values.
func (s SliceWrapper) OnNodesWith(key string, values ...string) SliceWrapper {
	return s.Change(func(spec *resourceapi.ResourceSliceSpec) {
		spec.NodeName, spec.NodeSelector = nil, NodeSelector(key, values...)
	})
}

// PerDevice leaves it to each device for which nodes it is.
func (s SliceWrapper) PerDevice() SliceWrapper {
	return s.Change(func(spec *resourceapi.ResourceSliceSpec) {
		spec.NodeName, spec.PerDeviceNodeSelection = nil, ptr.To(true)
	})
}

// Of is a slice of a pool with so many slices.
func (s SliceWrapper) Of(count int64) SliceWrapper {
	return s.Change(func(spec *resourceapi.ResourceSliceSpec) { spec.Pool.ResourceSliceCount = count })
}

// Generation sets that of the pool.
func (s SliceWrapper) Generation(generation int64) SliceWrapper {
	return s.Change(func(spec *resourceapi.ResourceSliceSpec) { spec.Pool.Generation = generation })
}

// WithCounters adds a counter set, its counters given as "name=quantity".
func (s SliceWrapper) WithCounters(set string, counters ...string) SliceWrapper {
	return s.Change(func(spec *resourceapi.ResourceSliceSpec) {
		spec.SharedCounters = append(spec.SharedCounters, resourceapi.CounterSet{Name: set, Counters: counterMap(counters)})
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

// Device has attributes and capacities: "model=x" is a string attribute,
// "memory:=40Gi" a capacity.
func Device(name string, properties ...string) DeviceWrapper {
	d := DeviceWrapper{resourceapi.Device{Name: name}}
	for _, property := range properties {
		if key, value, ok := strings.Cut(property, ":="); ok {
			if d.Capacity == nil {
				d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
			}
			d.Capacity[resourceapi.QualifiedName(key)] = resourceapi.DeviceCapacity{Value: resource.MustParse(value)}
			continue
		}
		key, value, _ := strings.Cut(property, "=")
		if d.Attributes == nil {
			d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
		}
		d.Attributes[resourceapi.QualifiedName(key)] = resourceapi.DeviceAttribute{StringValue: &value}
	}
	return d
}

// Change edits the device.
func (d DeviceWrapper) Change(f func(device *resourceapi.Device)) DeviceWrapper {
	out := DeviceWrapper{*d.DeepCopy()}
	f(&out.Device)
	return out
}

// Tainted adds a taint.
func (d DeviceWrapper) Tainted(key string, effect resourceapi.DeviceTaintEffect) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) {
		device.Taints = append(device.Taints, resourceapi.DeviceTaint{Key: key, Effect: effect})
	})
}

// Consuming takes from a counter set, the counters given as "name=quantity".
func (d DeviceWrapper) Consuming(set string, counters ...string) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) {
		device.ConsumesCounters = append(device.ConsumesCounters, resourceapi.DeviceCounterConsumption{CounterSet: set, Counters: counterMap(counters)})
	})
}

// InGroups sets the compatibility groups.
func (d DeviceWrapper) InGroups(groups ...string) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) {
		for i := range device.ConsumesCounters {
			device.ConsumesCounters[i].CompatibilityGroups = groups
		}
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

// OnNode is for slices that select nodes per device.
func (d DeviceWrapper) OnNode(name string) DeviceWrapper {
	return d.Change(func(device *resourceapi.Device) { device.NodeName = &name })
}

// RequestWrapper is a request whose methods return changed copies.
type RequestWrapper struct{ resourceapi.DeviceRequest }

// Request asks for a number of devices of a class that the expressions select.
func Request(name, class string, count int64, expressions ...string) RequestWrapper {
	r := RequestWrapper{resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}}}
	for _, expression := range expressions {
		r.Exactly.Selectors = append(r.Exactly.Selectors, CELSelector(expression))
	}
	return r
}

// RequestAll asks for all devices of a class that the expressions select.
func RequestAll(name, class string, expressions ...string) RequestWrapper {
	r := Request(name, class, 0, expressions...)
	r.Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	return r
}

// FirstAvailable is a prioritized list of alternatives.
func FirstAvailable(name string, alternatives ...RequestWrapper) RequestWrapper {
	r := RequestWrapper{resourceapi.DeviceRequest{Name: name}}
	for _, alternative := range alternatives {
		r.FirstAvailable = append(r.FirstAvailable, resourceapi.DeviceSubRequest{
			Name:            alternative.Name,
			DeviceClassName: alternative.Exactly.DeviceClassName,
			AllocationMode:  alternative.Exactly.AllocationMode,
			Count:           alternative.Exactly.Count,
			Selectors:       alternative.Exactly.Selectors,
		})
	}
	return r
}

// Change edits the request.
func (r RequestWrapper) Change(f func(request *resourceapi.ExactDeviceRequest)) RequestWrapper {
	out := RequestWrapper{*r.DeepCopy()}
	f(out.Exactly)
	return out
}

// WithAdminAccess asks for admin access.
func (r RequestWrapper) WithAdminAccess() RequestWrapper {
	return r.Change(func(request *resourceapi.ExactDeviceRequest) { request.AdminAccess = ptr.To(true) })
}

// WithCapacity asks for a part of a capacity.
func (r RequestWrapper) WithCapacity(name, quantity string) RequestWrapper {
	return r.Change(func(request *resourceapi.ExactDeviceRequest) {
		request.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
			resourceapi.QualifiedName(name): resource.MustParse(quantity),
		}}
	})
}

// Tolerating adds a toleration of all taints with the key.
func (r RequestWrapper) Tolerating(key string) RequestWrapper {
	return r.Change(func(request *resourceapi.ExactDeviceRequest) {
		request.Tolerations = append(request.Tolerations, resourceapi.DeviceToleration{Key: key, Operator: resourceapi.DeviceTolerationOpExists})
	})
}

// ClaimWrapper is a claim whose methods return changed copies.
type ClaimWrapper struct{ *resourceapi.ResourceClaim }

// Claim is in the namespace default and asks for nothing yet.
func Claim(name string) ClaimWrapper {
	return ClaimWrapper{&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}}
}

// WithRequests adds requests.
func (c ClaimWrapper) WithRequests(requests ...RequestWrapper) ClaimWrapper {
	out := ClaimWrapper{c.DeepCopy()}
	for _, r := range requests {
		out.Spec.Devices.Requests = append(out.Spec.Devices.Requests, r.DeviceRequest)
	}
	return out
}

// Matching adds a constraint with matchAttribute.
func (c ClaimWrapper) Matching(attribute string, requests ...string) ClaimWrapper {
	out := ClaimWrapper{c.DeepCopy()}
	out.Spec.Devices.Constraints = append(out.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		Requests: requests, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return out
}

// Distinct adds a constraint with distinctAttribute.
func (c ClaimWrapper) Distinct(attribute string) ClaimWrapper {
	out := ClaimWrapper{c.DeepCopy()}
	out.Spec.Devices.Constraints = append(out.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return out
}

// Holding allocates a device, given as driver/pool/device, for the claim.
func (c ClaimWrapper) Holding(device string, changes ...func(*resourceapi.DeviceRequestAllocationResult)) ClaimWrapper {
	out := ClaimWrapper{c.DeepCopy()}
	parts := strings.Split(device, "/")
	result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: parts[0], Pool: parts[1], Device: parts[2]}
	for _, change := range changes {
		change(&result)
	}
	if out.Status.Allocation == nil {
		out.Status.Allocation = &resourceapi.AllocationResult{}
	}
	out.Status.Allocation.Devices.Results = append(out.Status.Allocation.Devices.Results, result)
	return out
}

// ForAdmin makes a result one for admin access.
func ForAdmin(result *resourceapi.DeviceRequestAllocationResult) { result.AdminAccess = ptr.To(true) }

// AsShare makes a result a share that consumes part of a capacity.
func AsShare(id, capacity, quantity string) func(*resourceapi.DeviceRequestAllocationResult) {
	return func(result *resourceapi.DeviceRequestAllocationResult) {
		result.ShareID = ptr.To(types.UID(id))
		if capacity != "" {
			result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{resourceapi.QualifiedName(capacity): resource.MustParse(quantity)}
		}
	}
}

// Unchanged makes sure that nobody changes the snapshot during the test.
func Unchanged(t testing.TB, snap *snapshot.Snapshot) {
	t.Helper()
	before := copySnapshot(snap)
	t.Cleanup(func() {
		if diff := gocmp.Diff(before, copySnapshot(snap)); diff != "" {
			t.Errorf("the snapshot was changed (-before +after):\n%s", diff)
		}
	})
}

// copySnapshot copies the objects that an allocator works with.
func copySnapshot(s *snapshot.Snapshot) map[string][]any {
	all := map[string][]any{}
	for _, o := range s.Slices {
		all["slices"] = append(all["slices"], o.DeepCopy())
	}
	for _, o := range s.Claims {
		all["claims"] = append(all["claims"], o.DeepCopy())
	}
	for _, o := range s.Classes {
		all["classes"] = append(all["classes"], o.DeepCopy())
	}
	for _, o := range s.Templates {
		all["templates"] = append(all["templates"], o.DeepCopy())
	}
	for _, o := range s.Nodes {
		all["nodes"] = append(all["nodes"], o.DeepCopy())
	}
	for _, o := range s.Pods {
		all["pods"] = append(all["pods"], o.DeepCopy())
	}
	return all
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
