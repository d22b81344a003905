// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"context"
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

const (
	driverA = "a.example.com"
	driverB = "b.example.com"
	classA  = "class-a"
	classB  = "class-b"
	node1   = "node-1"
	node2   = "node-2"
)

// cluster builds a snapshot from objects of any kind. All gates that select
// the allocator are off unless named with gates.
func cluster(objects ...any) *snapshot.Snapshot {
	s := &snapshot.Snapshot{ServerVersion: "v1.37.1", Gates: map[string]snapshot.Gate{}}
	for name := range resolveGates(s) {
		s.Gates[name] = snapshot.Gate{Source: snapshot.GateFromFlag}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case gates:
			for _, name := range o {
				s.Gates[name] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
			}
		case wrapSlice:
			s.Slices = append(s.Slices, o.ResourceSlice)
		case wrapClaim:
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
	sortObjects(s.Slices)
	sortObjects(s.Claims)
	sortObjects(s.Classes)
	sortObjects(s.TaintRules)
	sortObjects(s.Templates)
	sortObjects(s.Nodes)
	sortObjects(s.Pods)
	return s
}

func sortObjects[T metav1.Object](list []T) {
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
}

type gates []string

func stableGates() gates {
	return gates{gateAdminAccess, gatePrioritizedList, gatePartitionableDevices, gateDeviceTaints}
}

func incubatingGates() gates {
	return append(stableGates(), gateConsumableCapacity, gateBindingConditions, gateDeviceStatus)
}

func experimentalGates() gates {
	return append(incubatingGates(), gateListTypeAttributes, gateCompatibilityGroups, gateDerivedAttributes, gateOptionalNodeOps)
}

func class(name, driver string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{celSelector(fmt.Sprintf("device.driver == %q", driver))}},
	}
}

func celSelector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

func node(name string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		n.Labels[key] = value
	}
	return n
}

type wrapSlice struct{ *resourceapi.ResourceSlice }

// slice has the node's name for its name's prefix, pool and node selection.
func slice(name, driver, pool string, devices ...wrapDevice) wrapSlice {
	s := wrapSlice{&resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			Pool:     resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
			NodeName: ptr.To(node1),
		},
	}}
	for _, d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, d.Device)
	}
	return s
}

func (s wrapSlice) change(f func(spec *resourceapi.ResourceSliceSpec)) wrapSlice {
	out := wrapSlice{s.DeepCopy()}
	f(&out.Spec)
	return out
}

func (s wrapSlice) onNode(name string) wrapSlice {
	return s.change(func(spec *resourceapi.ResourceSliceSpec) { spec.NodeName = &name })
}

func (s wrapSlice) onAllNodes() wrapSlice {
	return s.change(func(spec *resourceapi.ResourceSliceSpec) { spec.NodeName, spec.AllNodes = nil, ptr.To(true) })
}

func (s wrapSlice) onNodesWith(key string, values ...string) wrapSlice {
	return s.change(func(spec *resourceapi.ResourceSliceSpec) {
		spec.NodeName, spec.NodeSelector = nil, nodeSelector(key, values...)
	})
}

func (s wrapSlice) perDevice() wrapSlice {
	return s.change(func(spec *resourceapi.ResourceSliceSpec) {
		spec.NodeName, spec.PerDeviceNodeSelection = nil, ptr.To(true)
	})
}

func (s wrapSlice) of(count int64) wrapSlice {
	return s.change(func(spec *resourceapi.ResourceSliceSpec) { spec.Pool.ResourceSliceCount = count })
}

func (s wrapSlice) generation(generation int64) wrapSlice {
	return s.change(func(spec *resourceapi.ResourceSliceSpec) { spec.Pool.Generation = generation })
}

func (s wrapSlice) withCounters(set string, counters ...string) wrapSlice {
	return s.change(func(spec *resourceapi.ResourceSliceSpec) {
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

func nodeSelector(key string, values ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}
}

type wrapDevice struct{ resourceapi.Device }

// device has attributes and capacities: "model=x" is a string attribute,
// "memory:=40Gi" a capacity.
func device(name string, properties ...string) wrapDevice {
	d := wrapDevice{resourceapi.Device{Name: name}}
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

func (d wrapDevice) change(f func(device *resourceapi.Device)) wrapDevice {
	out := wrapDevice{*d.DeepCopy()}
	f(&out.Device)
	return out
}

func (d wrapDevice) tainted(key string, effect resourceapi.DeviceTaintEffect) wrapDevice {
	return d.change(func(device *resourceapi.Device) {
		device.Taints = append(device.Taints, resourceapi.DeviceTaint{Key: key, Effect: effect})
	})
}

func (d wrapDevice) consuming(set string, counters ...string) wrapDevice {
	return d.change(func(device *resourceapi.Device) {
		device.ConsumesCounters = append(device.ConsumesCounters, resourceapi.DeviceCounterConsumption{CounterSet: set, Counters: counterMap(counters)})
	})
}

func (d wrapDevice) inGroups(groups ...string) wrapDevice {
	return d.change(func(device *resourceapi.Device) {
		for i := range device.ConsumesCounters {
			device.ConsumesCounters[i].CompatibilityGroups = groups
		}
	})
}

func (d wrapDevice) shareable() wrapDevice {
	return d.change(func(device *resourceapi.Device) { device.AllowMultipleAllocations = ptr.To(true) })
}

func (d wrapDevice) bindingOn(condition string) wrapDevice {
	return d.change(func(device *resourceapi.Device) {
		device.BindingConditions = []string{condition}
		device.BindingFailureConditions = []string{"failed"}
	})
}

func (d wrapDevice) onNode(name string) wrapDevice {
	return d.change(func(device *resourceapi.Device) { device.NodeName = &name })
}

type wrapRequest struct{ resourceapi.DeviceRequest }

func request(name, class string, count int64, expressions ...string) wrapRequest {
	r := wrapRequest{resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}}}
	for _, expression := range expressions {
		r.Exactly.Selectors = append(r.Exactly.Selectors, celSelector(expression))
	}
	return r
}

func requestAll(name, class string, expressions ...string) wrapRequest {
	r := request(name, class, 0, expressions...)
	r.Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	return r
}

func firstAvailable(name string, alternatives ...wrapRequest) wrapRequest {
	r := wrapRequest{resourceapi.DeviceRequest{Name: name}}
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

func (r wrapRequest) change(f func(request *resourceapi.ExactDeviceRequest)) wrapRequest {
	out := wrapRequest{*r.DeepCopy()}
	f(out.Exactly)
	return out
}

func (r wrapRequest) withAdminAccess() wrapRequest {
	return r.change(func(request *resourceapi.ExactDeviceRequest) { request.AdminAccess = ptr.To(true) })
}

func (r wrapRequest) withCapacity(name, quantity string) wrapRequest {
	return r.change(func(request *resourceapi.ExactDeviceRequest) {
		request.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
			resourceapi.QualifiedName(name): resource.MustParse(quantity),
		}}
	})
}

func (r wrapRequest) tolerating(key string) wrapRequest {
	return r.change(func(request *resourceapi.ExactDeviceRequest) {
		request.Tolerations = append(request.Tolerations, resourceapi.DeviceToleration{Key: key, Operator: resourceapi.DeviceTolerationOpExists})
	})
}

type wrapClaim struct{ *resourceapi.ResourceClaim }

func claim(name string) wrapClaim {
	return wrapClaim{&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}}
}

func (c wrapClaim) withRequests(requests ...wrapRequest) wrapClaim {
	out := wrapClaim{c.DeepCopy()}
	for _, r := range requests {
		out.Spec.Devices.Requests = append(out.Spec.Devices.Requests, r.DeviceRequest)
	}
	return out
}

func (c wrapClaim) matching(attribute string, requests ...string) wrapClaim {
	out := wrapClaim{c.DeepCopy()}
	out.Spec.Devices.Constraints = append(out.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		Requests: requests, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return out
}

func (c wrapClaim) distinct(attribute string) wrapClaim {
	out := wrapClaim{c.DeepCopy()}
	out.Spec.Devices.Constraints = append(out.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return out
}

// holding allocates a device, given as driver/pool/device, for the claim.
func (c wrapClaim) holding(device string, changes ...func(*resourceapi.DeviceRequestAllocationResult)) wrapClaim {
	out := wrapClaim{c.DeepCopy()}
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

func forAdmin(result *resourceapi.DeviceRequestAllocationResult) { result.AdminAccess = ptr.To(true) }

func asShare(id, capacity, quantity string) func(*resourceapi.DeviceRequestAllocationResult) {
	return func(result *resourceapi.DeviceRequestAllocationResult) {
		result.ShareID = ptr.To(types.UID(id))
		if capacity != "" {
			result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{resourceapi.QualifiedName(capacity): resource.MustParse(quantity)}
		}
	}
}

// newAllocator sets an allocator up and makes sure that nobody changes the
// snapshot during the test.
func newAllocator(t testing.TB, snap *snapshot.Snapshot, opts ...Option) *Allocator {
	t.Helper()
	before := copySnapshot(snap)
	t.Cleanup(func() {
		if diff := gocmp.Diff(before, copySnapshot(snap)); diff != "" {
			t.Errorf("the snapshot was changed (-before +after):\n%s", diff)
		}
	})
	a, err := New(context.Background(), snap, opts...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return a
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

// check copies the claims and makes sure that they are not changed.
func check(t testing.TB, a *Allocator, n *corev1.Node, claims ...wrapClaim) Verdict {
	t.Helper()
	var list, before []*resourceapi.ResourceClaim
	for _, c := range claims {
		list = append(list, c.ResourceClaim)
		before = append(before, c.DeepCopy())
	}
	verdict := a.Check(context.Background(), n, list)
	if diff := gocmp.Diff(before, list); diff != "" {
		t.Errorf("the claims were changed (-before +after):\n%s", diff)
	}
	return verdict
}

// picked lists the devices of a verdict, the claims separated by "|".
func picked(v Verdict) string {
	var claims []string
	for i := range v.Allocations {
		var devices []string
		for _, r := range v.Allocations[i].Devices.Results {
			devices = append(devices, DeviceID{r.Driver, r.Pool, r.Device}.String())
		}
		claims = append(claims, strings.Join(devices, " "))
	}
	return strings.Join(claims, " | ")
}
