// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Claims lists all ResourceClaims by namespace and name.
func (v *Inventory) Claims() []Claim {
	list := make([]Claim, 0, len(v.snap.Claims))
	for _, claim := range v.snap.Claims {
		list = append(list, v.claim(claim))
	}
	return list
}

func (v *Inventory) claim(claim *resourceapi.ResourceClaim) Claim {
	out := Claim{
		TypeMeta:  typeMeta("Claim"),
		Namespace: claim.Namespace, Name: claim.Name, Labels: claim.Labels,
		State: claimState(claim), Requests: v.requestsOf(claim),
	}
	out.Created, out.AgeSeconds = v.age(claim.CreationTimestamp)
	pods := v.podsOf(claim)
	out.PodCount = len(pods)
	for _, pod := range pods[:min(len(pods), maxPods)] {
		out.Pods = append(out.Pods, pod.Name)
	}
	if len(pods) > 0 {
		out.Template = templateOf(pods[0], claim)
	}
	for _, consumer := range claim.Status.ReservedFor {
		out.ReservedFor = append(out.ReservedFor, consumerText(consumer))
	}
	if allocation := claim.Status.Allocation; allocation != nil {
		out.AllocatedAt = allocation.AllocationTimestamp
		out.Node, out.Scope = allocationScope(allocation)
	}
	out.Flags = v.flagsOf(claim)
	return out
}

func claimState(claim *resourceapi.ResourceClaim) ClaimState {
	switch {
	case claim.DeletionTimestamp != nil:
		return ClaimDeleting
	case claim.Status.Allocation == nil:
		return ClaimPending
	case len(claim.Status.ReservedFor) == 0:
		return ClaimAllocated
	default:
		return ClaimReserved
	}
}

func consumerText(consumer resourceapi.ResourceClaimConsumerReference) string {
	return strings.TrimSuffix(consumer.Resource, "s") + "/" + consumer.Name
}

// allocationScope tells where allocated devices can be used.
func allocationScope(allocation *resourceapi.AllocationResult) (node, scope string) {
	selector := allocation.NodeSelector
	if selector == nil {
		return "", "all nodes"
	}
	if terms := selector.NodeSelectorTerms; len(terms) == 1 && len(terms[0].MatchExpressions) == 0 && len(terms[0].MatchFields) == 1 {
		if field := terms[0].MatchFields[0]; field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
			return field.Values[0], field.Values[0]
		}
	}
	return "", selectorText(selector)
}

// templateOf finds the template that a claim was generated from in the pod
// that uses it.
func templateOf(pod *corev1.Pod, claim *resourceapi.ResourceClaim) string {
	for i := range pod.Spec.ResourceClaims {
		entry := &pod.Spec.ResourceClaims[i]
		name, _, err := resourceclaim.Name(pod, entry)
		if err == nil && name != nil && *name == claim.Name {
			return ptr.Deref(entry.ResourceClaimTemplateName, "")
		}
	}
	return ""
}

func (v *Inventory) requestsOf(claim *resourceapi.ResourceClaim) []ClaimRequest {
	requests := make([]ClaimRequest, 0, len(claim.Spec.Devices.Requests))
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		out := ClaimRequest{Name: r.Name}
		if exact := r.Exactly; exact != nil {
			out.DeviceClass, out.Mode, out.Count = exact.DeviceClassName, string(exact.AllocationMode), exact.Count
			out.AdminAccess = ptr.Deref(exact.AdminAccess, false)
		}
		for j := range r.FirstAvailable {
			out.DeviceClasses = append(out.DeviceClasses, r.FirstAvailable[j].DeviceClassName)
		}
		if allocation := claim.Status.Allocation; allocation != nil {
			for j := range allocation.Devices.Results {
				result := &allocation.Devices.Results[j]
				if resourceclaim.BaseRequestRef(result.Request) == r.Name {
					out.Devices = append(out.Devices, v.claimDevice(claim, result))
				}
			}
		}
		requests = append(requests, out)
	}
	return requests
}

func (v *Inventory) claimDevice(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) ClaimDevice {
	return ClaimDevice{
		Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		ShareID:  string(ptr.Deref(result.ShareID, "")),
		Consumed: quantities(result.ConsumedCapacity),
		Missing:  v.missing(result),
		Status:   deviceStatus(allocator.DeviceStatus(claim, result)),
	}
}

// missing tells whether it is known that no slice has a device.
func (v *Inventory) missing(result *resourceapi.DeviceRequestAllocationResult) bool {
	return v.snap.Gap(snapshot.ResourceSlices) == nil && v.alloc.Device(deviceID(result)) == nil
}

func deviceID(result *resourceapi.DeviceRequestAllocationResult) allocator.DeviceID {
	return allocator.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
}

// flagsOf tells what is odd about a claim, as far as that is known.
func (v *Inventory) flagsOf(claim *resourceapi.ResourceClaim) []ClaimFlag {
	var flags []ClaimFlag
	flag := func(name FlagName, format string, args ...any) {
		flags = append(flags, ClaimFlag{Name: name, Message: fmt.Sprintf(format, args...)})
	}
	allocation := claim.Status.Allocation
	podsKnown := v.podsKnown(claim.Namespace)
	if claim.DeletionTimestamp != nil {
		if holders := keepers(claim); len(holders) > 0 {
			flag(FlagHeld, "its deletion waits for %s", strings.Join(holders, ", "))
		}
	}
	switch {
	case allocation == nil && podsKnown && len(v.podsOf(claim)) == 0 && claim.DeletionTimestamp == nil:
		flag(FlagWaitingForPod, "no pod uses it; it gets its devices when one does")
	case allocation != nil && len(claim.Status.ReservedFor) == 0:
		flag(FlagUnreserved, "it has devices that nobody uses")
	}
	if owner := metav1.GetControllerOfNoCopy(claim); podsKnown && owner != nil && owner.Kind == "Pod" {
		if pod := v.snap.Pod(claim.Namespace, owner.Name); pod == nil || pod.UID != "" && pod.UID != owner.UID {
			flag(FlagOrphaned, "it was made for pod %s, which does not exist any more", owner.Name)
		}
	}
	for _, consumer := range claim.Status.ReservedFor {
		if why := v.stale(claim.Namespace, consumer); podsKnown && why != "" {
			flag(FlagStaleReservation, "it is reserved for pod %s, %s", consumer.Name, why)
		}
	}
	if allocation == nil {
		return flags
	}
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		if v.missing(result) {
			flag(FlagDeviceGone, "no ResourceSlice has device %s any more", deviceID(result))
		}
		if other := v.alsoHeldBy(claim, result); other != "" {
			flag(FlagDeviceTwice, "device %s is allocated to claim %s, too", deviceID(result), other)
		}
	}
	return flags
}

func (v *Inventory) podsKnown(namespace string) bool {
	gap := v.snap.Gap(snapshot.ResourcePods)
	return gap == nil || gap.Namespace != "" && gap.Namespace == namespace
}

// keepers lists who keeps a claim that is being deleted.
func keepers(claim *resourceapi.ResourceClaim) []string {
	var holders []string
	for _, consumer := range claim.Status.ReservedFor {
		holders = append(holders, consumerText(consumer))
	}
	if len(holders) > 0 {
		return holders
	}
	for _, finalizer := range claim.Finalizers {
		holders = append(holders, "finalizer "+finalizer)
	}
	return holders
}

// stale tells why a reservation is not worth anything any more.
func (v *Inventory) stale(namespace string, consumer resourceapi.ResourceClaimConsumerReference) string {
	if consumer.APIGroup != "" || consumer.Resource != "pods" {
		return ""
	}
	pod := v.snap.Pod(namespace, consumer.Name)
	switch {
	case pod == nil:
		return "which does not exist any more"
	case pod.UID != types.UID("") && pod.UID != consumer.UID:
		return "which was replaced by another one of the same name"
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return "which is finished"
	default:
		return ""
	}
}

// alsoHeldBy names another claim that has a device for itself.
func (v *Inventory) alsoHeldBy(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) string {
	exclusive := func(r *resourceapi.DeviceRequestAllocationResult) bool {
		return !ptr.Deref(r.AdminAccess, false) && r.ShareID == nil
	}
	if !exclusive(result) {
		return ""
	}
	holders := v.alloc.Holders(deviceID(result))
	at := slices.IndexFunc(holders, func(h allocator.Holder) bool { return h.Claim != claim && exclusive(h.Result) })
	if at < 0 {
		return ""
	}
	return holders[at].Claim.Namespace + "/" + holders[at].Claim.Name
}
