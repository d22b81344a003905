// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// BindingTimeout is how long the scheduler waits for binding conditions, the
// default of bindingTimeout in DynamicResourcesArgs.
const BindingTimeout = 600 * time.Second

// Score is the score that the scheduler's dynamicresources plugin gives a node
// before normalization: the sooner an alternative of a prioritized list comes,
// the more points it brings. Claims are all of the pod's in order, allocations
// those that [Allocator.Check] gave for the ones without an allocation.
func Score(claims []*resourceapi.ResourceClaim, allocations []resourceapi.AllocationResult) int64 {
	var score int64
	for _, claim := range claims {
		allocation := claim.Status.Allocation
		if allocation == nil {
			if len(allocations) == 0 {
				break
			}
			allocation, allocations = &allocations[0], allocations[1:]
		}
		chosen := sets.New[string]()
		for i := range allocation.Devices.Results {
			chosen.Insert(allocation.Devices.Results[i].Request)
		}
		for i := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[i]
			for j := range request.FirstAvailable {
				if chosen.Has(resourceclaim.CreateSubRequestRef(request.Name, request.FirstAvailable[j].Name)) {
					score += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - j)
				}
			}
		}
	}
	return score
}

// AvailableOn reports whether an allocated claim can be used on a node, as the
// scheduler's Filter does; if not, the reason names no node. A claim without
// an allocation is available everywhere.
func (a *Allocator) AvailableOn(claim *resourceapi.ResourceClaim, node *corev1.Node) (available bool, reason string) {
	allocation := claim.Status.Allocation
	if allocation == nil {
		return true, ""
	}
	switch selected, err := AllocatedFor(allocation, node); {
	case err != nil:
		return false, fmt.Sprintf("the node selector of its allocation cannot be parsed: %v", err)
	case !selected:
		return false, "its devices are on other nodes"
	}
	const operations = draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate
	for i := range allocation.Devices.Results {
		if len(allocation.Devices.Results[i].SkipNodeOperations) > 0 && !slices.Contains(node.Status.DeclaredFeatures, operations) {
			return false, fmt.Sprintf("its devices need %s, which the node does not declare", operations)
		}
	}
	if !a.features.DeviceBindingAndStatus {
		return true, ""
	}
	ready, failure := readyForBinding(claim)
	switch {
	case failure != "":
		return false, failure
	case !ready && a.bindingTimedOut(claim):
		return false, fmt.Sprintf("its binding conditions were not met within %s", BindingTimeout)
	default:
		return true, ""
	}
}

// AllocatedFor reports whether the devices of an allocation can be used on a node
// as far as its node selector goes, which may not be valid.
func AllocatedFor(allocation *resourceapi.AllocationResult, node *corev1.Node) (bool, error) {
	if allocation.NodeSelector == nil {
		return true, nil
	}
	selector, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
	if err != nil {
		return false, err
	}
	return selector.Match(node), nil
}

// readyForBinding reports whether all binding conditions of a claim are true. If
// one that stands for a failure is, it says so.
func readyForBinding(claim *resourceapi.ResourceClaim) (ready bool, failure string) {
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if len(result.BindingConditions) == 0 {
			continue
		}
		status := bindingStatus(claim, result)
		if status == nil {
			return false, ""
		}
		for _, name := range result.BindingFailureConditions {
			if c := apimeta.FindStatusCondition(status.Conditions, name); c != nil && c.Status == metav1.ConditionTrue {
				return false, fmt.Sprintf("binding of device %s failed: %s, reason %s: %s", result.Device, name, c.Reason, c.Message)
			}
		}
		for _, name := range result.BindingConditions {
			if !apimeta.IsStatusConditionTrue(status.Conditions, name) {
				return false, ""
			}
		}
	}
	return true, ""
}

// AwaitedCondition is a condition of an allocated device that keeps the scheduler
// from binding a pod with the claim.
type AwaitedCondition struct {
	Result *resourceapi.DeviceRequestAllocationResult
	Name   string
	// Now is the condition as it is, nil if the driver has not set it.
	Now *metav1.Condition
	// Failed is set for a condition that means failure, and is true.
	Failed bool
}

// Awaited lists what the binding of pods with an allocated claim waits for, or
// fails by. It is nil while the feature is off.
func (a *Allocator) Awaited(claim *resourceapi.ResourceClaim) []AwaitedCondition {
	if !a.features.DeviceBindingAndStatus || claim.Status.Allocation == nil {
		return nil
	}
	var awaited []AwaitedCondition
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if len(result.BindingConditions) == 0 {
			continue
		}
		var conditions []metav1.Condition
		if status := bindingStatus(claim, result); status != nil {
			conditions = status.Conditions
		}
		for _, name := range result.BindingFailureConditions {
			if c := apimeta.FindStatusCondition(conditions, name); c != nil && c.Status == metav1.ConditionTrue {
				awaited = append(awaited, AwaitedCondition{Result: result, Name: name, Now: c, Failed: true})
			}
		}
		for _, name := range result.BindingConditions {
			if c := apimeta.FindStatusCondition(conditions, name); c == nil || c.Status != metav1.ConditionTrue {
				awaited = append(awaited, AwaitedCondition{Result: result, Name: name, Now: c})
			}
		}
	}
	return awaited
}

// readyCondition is the one condition whose meaning the API gives: it is true
// once the device is configured (AllocatedDeviceStatus in k8s.io/api).
const readyCondition = "Ready"

// OddConditions lists the conditions of an allocated device that are known not to
// be as they should: Ready and those that binding waits for if they are not true,
// those that stand for a failure of binding if they are. What others mean, and
// whether they should be true, only the driver knows.
func OddConditions(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) []metav1.Condition {
	status := DeviceStatus(claim, result)
	if status == nil {
		return nil
	}
	var odd []metav1.Condition
	for i := range status.Conditions {
		c := &status.Conditions[i]
		isTrue := c.Status == metav1.ConditionTrue
		switch {
		case slices.Contains(result.BindingFailureConditions, c.Type):
			if isTrue {
				odd = append(odd, *c)
			}
		case c.Type == readyCondition || slices.Contains(result.BindingConditions, c.Type):
			if !isTrue {
				odd = append(odd, *c)
			}
		}
	}
	return odd
}

// DeviceStatus is what the driver says about an allocated device, or about the
// share of it that the result is about, in the status of its claim; nil if
// nothing.
func DeviceStatus(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *resourceapi.AllocatedDeviceStatus {
	for i := range claim.Status.Devices {
		status := &claim.Status.Devices[i]
		if status.Driver == result.Driver && status.Pool == result.Pool && status.Device == result.Device &&
			ptr.Deref(status.ShareID, "") == string(ptr.Deref(result.ShareID, "")) {
			return status
		}
	}
	return nil
}

// DeviceReady reports whether the driver says in the status of the claim that an
// allocated device is ready (KEP-4817). A device of which it says so and that no
// slice has is no fault: drivers of networks do not publish an interface any more
// that they moved into a pod.
func DeviceReady(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) bool {
	status := DeviceStatus(claim, result)
	return status != nil && apimeta.IsStatusConditionTrue(status.Conditions, readyCondition)
}

// bindingStatus is what the scheduler takes for the status of an allocated
// device: for it, shares of a device are all the same.
func bindingStatus(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *resourceapi.AllocatedDeviceStatus {
	for i := range claim.Status.Devices {
		status := &claim.Status.Devices[i]
		if status.Driver == result.Driver && status.Pool == result.Pool && status.Device == result.Device {
			return status
		}
	}
	return nil
}

func (a *Allocator) bindingTimedOut(claim *resourceapi.ResourceClaim) bool {
	allocation := claim.Status.Allocation
	if allocation.AllocationTimestamp == nil {
		return false
	}
	return slices.ContainsFunc(allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return result.BindingConditions != nil
	}) && allocation.AllocationTimestamp.Add(BindingTimeout).Before(a.snap.Now())
}

// Reserved reports whether a claim lists the pod, or its group, as a consumer.
// Where a claim is reserved for a group, that is believed rather than what the
// gate is by default.
func (a *Allocator) Reserved(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	return pod.UID != "" && resourceclaim.IsReservedForPod(pod, claim, a.groupsUseClaims())
}

// groupsUseClaims is false if it is known that groups of pods use no claims.
func (a *Allocator) groupsUseClaims() bool {
	return a.FeatureEnabled(gateWorkloadClaims) || a.gates[gateWorkloadClaims].Source == snapshot.GateFromDefault
}

// ReservedByAssumption reports whether the pod may use the claim only because
// that is reserved for the pod's group: that groups can use claims is known
// from nothing else.
func (a *Allocator) ReservedByAssumption(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	return a.Reserved(claim, pod) && !resourceclaim.IsReservedForPod(pod, claim, a.FeatureEnabled(gateWorkloadClaims))
}
