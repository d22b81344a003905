// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// RequestWrapper is a request whose methods return changed copies.
type RequestWrapper struct{ resourceapi.DeviceRequest }

// Request asks for a number of devices of a class that the expressions select.
func Request(name, class string, count int64, expressions ...string) RequestWrapper {
	return RequestWrapper{resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count, Selectors: CELSelectors(expressions...),
	}}}
}

// GPUs asks for a number of devices of [ClassGPU].
func GPUs(name string, count int64, expressions ...string) RequestWrapper {
	return Request(name, ClassGPU, count, expressions...)
}

// FirstAvailable returns a prioritized list of alternatives.
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

// All asks for all devices.
func (r RequestWrapper) All() RequestWrapper {
	return r.Change(func(request *resourceapi.ExactDeviceRequest) {
		request.AllocationMode, request.Count = resourceapi.DeviceAllocationModeAll, 0
	})
}

// Where adds selectors.
func (r RequestWrapper) Where(expressions ...string) RequestWrapper {
	return r.Change(func(request *resourceapi.ExactDeviceRequest) {
		request.Selectors = append(request.Selectors, CELSelectors(expressions...)...)
	})
}

// OfClass asks for devices of another class.
func (r RequestWrapper) OfClass(name string) RequestWrapper {
	return r.Change(func(request *resourceapi.ExactDeviceRequest) { request.DeviceClassName = name })
}

// Deriving adds an attribute that is computed.
func (r RequestWrapper) Deriving(name, expression string) RequestWrapper {
	return r.Change(func(request *resourceapi.ExactDeviceRequest) {
		request.DerivedAttributes = append(request.DerivedAttributes, resourceapi.DeviceDerivedAttribute{Name: resourceapi.FullyQualifiedName(name), Expression: expression})
	})
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

// Claim returns a claim in the namespace that is not allocated.
func Claim(name string, requests ...RequestWrapper) ClaimWrapper {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: UID(name)}}
	for _, r := range requests {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, r.DeviceRequest)
	}
	return ClaimWrapper{c}
}

// UID returns the UID of an object with the name.
func UID(name string) types.UID { return types.UID("uid-" + name) }

// Change edits the claim.
func (c ClaimWrapper) Change(f func(claim *resourceapi.ResourceClaim)) ClaimWrapper {
	out := ClaimWrapper{c.DeepCopy()}
	f(out.ResourceClaim)
	return out
}

// Constrained adds constraints.
func (c ClaimWrapper) Constrained(constraints ...resourceapi.DeviceConstraint) ClaimWrapper {
	return c.Change(func(claim *resourceapi.ResourceClaim) {
		claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, constraints...)
	})
}

// Matching adds a constraint with matchAttribute.
func (c ClaimWrapper) Matching(attribute string, requests ...string) ClaimWrapper {
	return c.Constrained(MatchAttribute(attribute, requests...))
}

// MatchAttribute returns a constraint for the requests, or for all.
func MatchAttribute(attribute string, requests ...string) resourceapi.DeviceConstraint {
	return resourceapi.DeviceConstraint{Requests: requests, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute))}
}

// Distinct adds a constraint with distinctAttribute.
func (c ClaimWrapper) Distinct(attribute string) ClaimWrapper {
	return c.Constrained(DistinctAttribute(attribute))
}

// DistinctAttribute returns a constraint for all requests.
func DistinctAttribute(attribute string) resourceapi.DeviceConstraint {
	return resourceapi.DeviceConstraint{DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute))}
}

// Holding allocates a device for the first request: driver/pool/device, on any
// node, or pool/device of [Driver] on the node with the pool's name, or only the
// device, on [Node1].
func (c ClaimWrapper) Holding(device string, changes ...func(*resourceapi.DeviceRequestAllocationResult)) ClaimWrapper {
	return c.Change(func(claim *resourceapi.ResourceClaim) {
		if claim.Status.Allocation == nil {
			claim.Status.Allocation = &resourceapi.AllocationResult{}
		}
		result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: Driver, Pool: Node1}
		if requests := claim.Spec.Devices.Requests; len(requests) > 0 {
			result.Request = requests[0].Name
		}
		switch parts := strings.Split(device, "/"); len(parts) {
		case 3:
			result.Driver, result.Pool, result.Device = parts[0], parts[1], parts[2]
		case 2:
			result.Pool, result.Device = parts[0], parts[1]
			claim.Status.Allocation.NodeSelector = nodeNamed(result.Pool)
		default:
			result.Device = device
			claim.Status.Allocation.NodeSelector = nodeNamed(Node1)
		}
		for _, change := range changes {
			change(&result)
		}
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, result)
	})
}

func nodeNamed(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
	}}}
}

// Serving returns a claim of the namespace serving that has devices of a node.
func Serving(name, node string, devices ...string) ClaimWrapper {
	c := Claim(name, GPUs("gpu", int64(len(devices)))).Change(func(claim *resourceapi.ResourceClaim) { claim.Namespace = "serving" })
	for _, device := range devices {
		c = c.Holding(node + "/" + device)
	}
	return c
}

// Sharing returns a claim of the namespace serving that has a share of a device.
func Sharing(name, node, device, capacity, quantity string) ClaimWrapper {
	c := Serving(name, node, device)
	AsShare("share-"+name, capacity, quantity)(&c.Status.Allocation.Devices.Results[0])
	return c
}

// ReservedFor adds a pod to those that may use the claim.
func (c ClaimWrapper) ReservedFor(pod, uid string) ClaimWrapper {
	return c.Change(func(claim *resourceapi.ResourceClaim) {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID(uid)})
	})
}

// Reported adds what the driver says about a device, with conditions such as
// "Ready=False".
func (c ClaimWrapper) Reported(device, shareID string, network *resourceapi.NetworkDeviceData, conditions ...string) ClaimWrapper {
	return c.Change(func(claim *resourceapi.ResourceClaim) {
		status := resourceapi.AllocatedDeviceStatus{Driver: Driver, Pool: Node1, Device: device, NetworkData: network}
		if shareID != "" {
			status.ShareID = &shareID
		}
		for _, text := range conditions {
			kind, value, _ := strings.Cut(text, "=")
			status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(value), Reason: "Because", Message: "so it is"})
		}
		claim.Status.Devices = append(claim.Status.Devices, status)
	})
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

// AwaitingBinding gives a result a binding condition, and one for failure.
func AwaitingBinding(condition, failure string) func(*resourceapi.DeviceRequestAllocationResult) {
	return func(result *resourceapi.DeviceRequestAllocationResult) {
		result.BindingConditions, result.BindingFailureConditions = []string{condition}, []string{failure}
	}
}

// Template returns a template of claims with the requests.
func Template(name string, requests ...RequestWrapper) *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: resourceapi.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"made-from": name}},
			Spec:       Claim("", requests...).Spec,
		},
	}
}

// OwnedBy sets the controller, a Pod or PodGroup.
func (c ClaimWrapper) OwnedBy(kind, name string) ClaimWrapper {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: UID(name), Controller: ptr.To(true)}
	if kind == "PodGroup" {
		owner.APIVersion = schedulingapi.SchemeGroupVersion.String()
	}
	return c.Change(func(claim *resourceapi.ResourceClaim) { claim.OwnerReferences = []metav1.OwnerReference{owner} })
}

// Deleted returns a claim that is being deleted, as soon as the finalizers are gone.
func (c ClaimWrapper) Deleted(finalizers ...string) ClaimWrapper {
	return c.Change(func(claim *resourceapi.ResourceClaim) {
		claim.DeletionTimestamp, claim.Finalizers = &metav1.Time{Time: Taken().Add(-time.Minute)}, finalizers
	})
}

// ForExtendedResources returns the claim that the scheduler makes for extended resources.
func (c ClaimWrapper) ForExtendedResources() ClaimWrapper {
	return c.Change(func(claim *resourceapi.ResourceClaim) {
		claim.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	})
}
