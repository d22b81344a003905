// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	driver    = "gpu.example.com"
	className = "gpu"
	namespace = "ml"
)

// part is something that a test puts into a cluster.
type part func(*snapshot.Snapshot)

// snapshotOf makes a snapshot of Kubernetes 1.37 with one DeviceClass for all
// devices of the driver.
func snapshotOf(t testing.TB, parts ...part) *snapshot.Snapshot {
	t.Helper()
	snap := &snapshot.Snapshot{
		Source: "a test", ServerVersion: "v1.37.1",
		TakenAt:    time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC),
		Gates:      map[string]snapshot.Gate{},
		Listed:     []string{snapshot.ResourceQuotas, snapshot.ResourceLimitRanges, snapshot.ResourceVolumeClaims, snapshot.ResourceVolumes, snapshot.ResourceStorageClasses},
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: namespace}}},
		Classes: []*resourceapi.DeviceClass{{
			ObjectMeta: metav1.ObjectMeta{Name: className},
			Spec:       resourceapi.DeviceClassSpec{Selectors: celSelectors(fmt.Sprintf("device.driver == %q", driver))},
		}},
	}
	for _, p := range parts {
		p(snap)
	}
	tc.SortObjects(snap.Claims)
	tc.SortObjects(snap.Pods)
	tc.SortObjects(snap.Nodes)
	tc.SortObjects(snap.Classes)
	return snap
}

func gate(name string, enabled bool) part {
	return func(s *snapshot.Snapshot) {
		s.Gates[name] = snapshot.Gate{Enabled: enabled, Source: snapshot.GateFromFlag}
	}
}

func gap(resource, reason string) part {
	return func(s *snapshot.Snapshot) {
		s.Gaps = append(s.Gaps, snapshot.Gap{Resource: resource, Reason: reason})
	}
}

func nodes(names ...string) part {
	return func(s *snapshot.Snapshot) {
		for _, name := range names {
			s.Nodes = append(s.Nodes, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
				Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110"),
				}},
			})
		}
	}
}

// changeNode changes a node that was added before.
func changeNode(name string, change func(*corev1.Node)) part {
	return func(s *snapshot.Snapshot) {
		for _, node := range s.Nodes {
			if node.Name == name {
				change(node)
			}
		}
	}
}

func celSelectors(expressions ...string) []resourceapi.DeviceSelector {
	list := make([]resourceapi.DeviceSelector, 0, len(expressions))
	for _, expression := range expressions {
		list = append(list, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return list
}

// pool publishes devices of one node in one slice.
func pool(node string, devices ...resourceapi.Device) part {
	return slice(node, func(*resourceapi.ResourceSlice) {}, devices...)
}

// slice is pool with a change to the slice.
func slice(node string, change func(*resourceapi.ResourceSlice), devices ...resourceapi.Device) part {
	return func(s *snapshot.Snapshot) {
		slice := &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%02d", node, len(s.Slices))},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: driver, NodeName: &node, Devices: devices,
				Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			},
		}
		change(slice)
		s.Slices = append(s.Slices, slice)
	}
}

// device makes a device; the changes add to it.
func device(name string, changes ...func(*resourceapi.Device)) resourceapi.Device {
	d := resourceapi.Device{
		Name:       name,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for _, change := range changes {
		change(&d)
	}
	return d
}

// devices makes several alike, gpu-0 and on.
func devices(n int, changes ...func(*resourceapi.Device)) []resourceapi.Device {
	list := make([]resourceapi.Device, 0, n)
	for i := range n {
		list = append(list, device(fmt.Sprintf("gpu-%d", i), changes...))
	}
	return list
}

func withModel(model string) func(*resourceapi.Device) { return tc.WithAttribute("model", model) }

func withList(name string, values ...string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Attributes[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{StringValues: append([]string{}, values...)}
	}
}

func withMemory(quantity string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Capacity["memory"] = resourceapi.DeviceCapacity{Value: resource.MustParse(quantity)}
	}
}

func withTaint(key string, effect resourceapi.DeviceTaintEffect) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Taints = append(d.Taints, resourceapi.DeviceTaint{Key: key, Effect: effect})
	}
}

func withTaintValue(key, value string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Taints = append(d.Taints, resourceapi.DeviceTaint{Key: key, Value: value, Effect: resourceapi.DeviceTaintEffectNoSchedule})
	}
}

func withCounter(set, counter, quantity string, groups ...string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.ConsumesCounters = append(d.ConsumesCounters, resourceapi.DeviceCounterConsumption{
			CounterSet: set, CompatibilityGroups: groups,
			Counters: map[string]resourceapi.Counter{counter: {Value: resource.MustParse(quantity)}},
		})
	}
}

// counters publishes a counter set in a second slice of a node's pool, whose
// other slice has to say so.
func counters(node, set, counter, quantity string) part {
	return slice(node, func(s *resourceapi.ResourceSlice) {
		s.Spec.Pool.ResourceSliceCount = 2
		s.Spec.SharedCounters = []resourceapi.CounterSet{{
			Name: set, Counters: map[string]resourceapi.Counter{counter: {Value: resource.MustParse(quantity)}},
		}}
	})
}

func twoSlices(s *resourceapi.ResourceSlice) { s.Spec.Pool.ResourceSliceCount = 2 }

// exact is a request for a number of devices of the class.
func exact(name string, count int64, changes ...func(*resourceapi.ExactDeviceRequest)) resourceapi.DeviceRequest {
	r := &resourceapi.ExactDeviceRequest{DeviceClassName: className, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count}
	for _, change := range changes {
		change(r)
	}
	return resourceapi.DeviceRequest{Name: name, Exactly: r}
}

func where(expressions ...string) func(*resourceapi.ExactDeviceRequest) {
	return func(r *resourceapi.ExactDeviceRequest) {
		r.Selectors = append(r.Selectors, celSelectors(expressions...)...)
	}
}

func all(r *resourceapi.ExactDeviceRequest) {
	r.AllocationMode, r.Count = resourceapi.DeviceAllocationModeAll, 0
}

func admin(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = ptr.To(true) }

func ofClass(name string) func(*resourceapi.ExactDeviceRequest) {
	return func(r *resourceapi.ExactDeviceRequest) { r.DeviceClassName = name }
}

func wanting(capacity, quantity string) func(*resourceapi.ExactDeviceRequest) {
	return func(r *resourceapi.ExactDeviceRequest) {
		r.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
			resourceapi.QualifiedName(capacity): resource.MustParse(quantity),
		}}
	}
}

func deriving(name, expression string) func(*resourceapi.ExactDeviceRequest) {
	return func(r *resourceapi.ExactDeviceRequest) {
		r.DerivedAttributes = append(r.DerivedAttributes, resourceapi.DeviceDerivedAttribute{Name: resourceapi.FullyQualifiedName(name), Expression: expression})
	}
}

func tolerating(key string) func(*resourceapi.ExactDeviceRequest) {
	return func(r *resourceapi.ExactDeviceRequest) {
		r.Tolerations = append(r.Tolerations, resourceapi.DeviceToleration{Key: key, Operator: resourceapi.DeviceTolerationOpExists})
	}
}

// firstOf is a prioritized list: a count for each alternative with its
// selectors.
func firstOf(name string, alternatives ...resourceapi.DeviceSubRequest) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, FirstAvailable: alternatives}
}

func alternative(name string, count int64, expressions ...string) resourceapi.DeviceSubRequest {
	return resourceapi.DeviceSubRequest{
		Name: name, DeviceClassName: className, AllocationMode: resourceapi.DeviceAllocationModeExactCount,
		Count: count, Selectors: celSelectors(expressions...),
	}
}

// claim adds a claim that waits for devices.
func claim(name string, requests ...resourceapi.DeviceRequest) part {
	return constrained(name, nil, requests...)
}

func constrained(name string, constraints []resourceapi.DeviceConstraint, requests ...resourceapi.DeviceRequest) part {
	return func(s *snapshot.Snapshot) {
		s.Claims = append(s.Claims, &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
			Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests, Constraints: constraints}},
		})
	}
}

func same(attribute string) []resourceapi.DeviceConstraint {
	return []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute))}}
}

func distinct(attribute string) []resourceapi.DeviceConstraint {
	return []resourceapi.DeviceConstraint{{DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute))}}
}

// holding adds a claim that has devices of a node.
func holding(name, node string, names ...string) part {
	return func(s *snapshot.Snapshot) {
		claim := &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: name, UID: types.UID("uid-" + name)},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
				Requests: []resourceapi.DeviceRequest{exact("gpu", int64(len(names)))},
			}},
			Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
				NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
				}}},
			}},
		}
		for _, device := range names {
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
				Request: "gpu", Driver: driver, Pool: node, Device: device,
			})
		}
		s.Claims = append(s.Claims, claim)
	}
}

// sharing adds a claim that has a share of a device.
func sharing(name, node, device, capacity, quantity string) part {
	return func(s *snapshot.Snapshot) {
		holding(name, node, device)(s)
		result := &s.Claims[len(s.Claims)-1].Status.Allocation.Devices.Results[0]
		result.ShareID = ptr.To(types.UID("share-" + name))
		result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{resourceapi.QualifiedName(capacity): resource.MustParse(quantity)}
	}
}

// pod adds a pending pod that uses claims by name.
func pod(name string, claims ...string) part {
	return changedPod(name, func(*corev1.Pod) {}, claims...)
}

func changedPod(name string, change func(*corev1.Pod), claims ...string) part {
	return func(s *snapshot.Snapshot) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(s.TakenAt.Add(-14 * time.Minute))},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodPending},
		}
		for _, name := range claims {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name})
			p.Spec.Containers[0].Resources.Claims = append(p.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: name})
		}
		change(p)
		s.Pods = append(s.Pods, p)
	}
}
