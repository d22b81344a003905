// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Problems of a claim of a pod; [PodClaim.Problem] wraps one of them or, for an unknown
// kind of entry, resourceclaim.ErrAPIUnsupported.
var (
	// ErrClaimNotCreated means that the controller has yet to make a claim from its
	// template.
	ErrClaimNotCreated = resourceclaim.ErrClaimNotFound
	// ErrClaimMissing means that a claim does not exist.
	ErrClaimMissing = errors.New("does not exist")
	// ErrClaimUnreadable means that claims or templates of the namespace could not be read.
	ErrClaimUnreadable = errors.New("could not be read")
	// ErrClaimDeleting means that a claim is being deleted.
	ErrClaimDeleting = errors.New("is being deleted")
	// ErrClaimNotOwned means that a claim was made for another pod.
	ErrClaimNotOwned = errors.New("belongs to somebody else")
	// ErrTemplateMissing means that a ResourceClaimTemplate does not exist.
	ErrTemplateMissing = errors.New("does not exist")
	// ErrPodGroupMissing means that a PodGroup does not exist.
	ErrPodGroupMissing = errors.New("does not exist")
	// ErrClaimStale means that the scheduler's claim for extended resources is of an
	// earlier attempt. The scheduler deletes it before it tries again.
	ErrClaimStale = errors.New("is left over from an earlier attempt; the scheduler deletes it and tries again")
)

// Claims knows the claims of one snapshot: which a pod uses, and whether they can be used.
type Claims struct {
	snap  *snapshot.Snapshot
	gates *Gates
	// classOf finds the class that backs an extended resource; nil while the
	// feature is off, and then it finds nothing.
	classOf *extendedresourcecache.ExtendedResourceCache
	// extended has the claims for extended resources.
	extended func() extendedClaims
	// made has the claims that the resourceclaim controller has made from templates, by the
	// UID of the pod.
	made func() map[types.UID][]*resourceapi.ResourceClaim
	// users has the pods that name each claim.
	users func() map[types.NamespacedName][]*corev1.Pod
}

type extendedClaims = layers[podKey, *resourceapi.ResourceClaim]

// newClaims returns the claims of a snapshot. It is faster with a sibling that has the same
// classes, and all but a few claims.
func newClaims(snap *snapshot.Snapshot, gates *Gates, sibling *Claims, changed *difference[*resourceapi.ResourceClaim]) *Claims {
	c := &Claims{snap: snap, gates: gates, made: sync.OnceValue(func() map[types.UID][]*resourceapi.ResourceClaim { return claimsMade(snap.Claims) })}
	if sibling != nil && snapshot.SameList(sibling.snap.Pods, snap.Pods) {
		c.users = sibling.users
	} else {
		pods := snap.Pods
		c.users = sync.OnceValue(func() map[types.NamespacedName][]*corev1.Pod { return usersOfClaims(pods) })
	}
	switch {
	case !gates.Enabled(GateExtendedResource):
	case sibling != nil && sibling.classOf != nil && snapshot.SameList(sibling.snap.Classes, snap.Classes):
		c.classOf = sibling.classOf
	default:
		c.classOf = extendedresourcecache.NewExtendedResourceCache(klog.Logger{})
		for _, class := range snap.Classes {
			c.classOf.OnAdd(class, true)
		}
	}
	switch {
	case changed == nil || slices.ContainsFunc(changed.Removed, isForExtendedResources):
		all := snap.Claims
		c.extended = sync.OnceValue(func() extendedClaims { return extendedClaims{}.With(indexExtendedClaims(all)) })
	case slices.ContainsFunc(changed.Added, isForExtendedResources):
		before := sibling.extended
		c.extended = sync.OnceValue(func() extendedClaims { return before().With(indexExtendedClaims(changed.Added)) })
	default:
		c.extended = sibling.extended
	}
	return c
}

func claimsMade(claims []*resourceapi.ResourceClaim) map[types.UID][]*resourceapi.ResourceClaim {
	made := map[types.UID][]*resourceapi.ResourceClaim{}
	for _, claim := range claims {
		if owner := metav1.GetControllerOfNoCopy(claim); owner != nil && claim.Annotations[podClaimAnnotation] != "" {
			made[owner.UID] = append(made[owner.UID], claim)
		}
	}
	return made
}

func usersOfClaims(pods []*corev1.Pod) map[types.NamespacedName][]*corev1.Pod {
	users := map[types.NamespacedName][]*corev1.Pod{}
	for _, pod := range pods {
		for name := range resourceclaim.PodClaims(pod) {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
			if of := users[key]; len(of) == 0 || of[len(of)-1] != pod {
				users[key] = append(of, pod)
			}
		}
	}
	return users
}

// Users returns the pods that name a claim, whether they may use it yet or not, in the order of the
// snapshot.
func (c *Claims) Users(namespace, name string) []*corev1.Pod {
	return c.users()[types.NamespacedName{Namespace: namespace, Name: name}]
}

// podKey identifies a pod as an owner reference does.
type podKey struct {
	name string
	uid  types.UID
}

// indexExtendedClaims finds the claims for extended resources by the pod that
// they were made for.
func indexExtendedClaims(claims []*resourceapi.ResourceClaim) map[podKey]*resourceapi.ResourceClaim {
	index := map[podKey]*resourceapi.ResourceClaim{}
	for _, claim := range claims {
		if !isForExtendedResources(claim) {
			continue
		}
		for _, owner := range claim.OwnerReferences {
			key := podKey{owner.Name, owner.UID}
			if ptr.Deref(owner.Controller, false) && index[key] == nil {
				index[key] = claim
			}
		}
	}
	return index
}

func isForExtendedResources(claim *resourceapi.ResourceClaim) bool {
	return claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true"
}

func (c *Claims) existingExtendedClaim(pod *corev1.Pod) *resourceapi.ResourceClaim {
	if pod.UID == "" {
		return nil
	}
	claim, _ := c.extended().Get(podKey{pod.Name, pod.UID})
	return claim
}

// BindingTimeout is how long the scheduler waits for binding conditions, the
// default of bindingTimeout in DynamicResourcesArgs.
const BindingTimeout = 600 * time.Second

// AvailableOn reports whether an allocated claim can be used on a node, as the scheduler's
// Filter does; if not, the reason names no node. An unallocated claim is available
// everywhere.
func (c *Claims) AvailableOn(claim *resourceapi.ResourceClaim, node *corev1.Node) (available bool, reason string) {
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
	if !c.gates.deviceBindingAndStatus {
		return true, ""
	}
	ready, failure := readyForBinding(claim)
	switch {
	case failure != "":
		return false, failure
	case !ready && c.bindingTimedOut(claim):
		return false, fmt.Sprintf("its binding conditions were not met within %s", BindingTimeout)
	default:
		return true, ""
	}
}

// AllocatedFor reports whether the node selector of an allocation matches a node. The
// selector may be invalid.
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

// readyForBinding reports whether all binding conditions of a claim are true. If a
// condition that means failure is true, it says so.
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
	// Now is the present condition, nil if the driver has not set it.
	Now *metav1.Condition
	// Failed is set for a condition that means failure, and is true.
	Failed bool
}

// Awaited lists the conditions that the binding of pods with an allocated claim waits for,
// or fails by. It is nil while the feature is off.
func (c *Claims) Awaited(claim *resourceapi.ResourceClaim) []AwaitedCondition {
	if !c.gates.deviceBindingAndStatus || claim.Status.Allocation == nil {
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

// OddConditions lists the conditions of an allocated device that are known to be
// unexpected: Ready and the conditions for binding if they are not true, conditions for a
// failed binding if they are. Only the driver knows the meaning of others.
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

// GoneText says that a device is not published any more.
func GoneText(device string) string {
	return "device " + device + " is no longer in any ResourceSlice"
}

// TwiceText says that two claims have a device that only one can have.
func TwiceText(device, claim, other string) string {
	return fmt.Sprintf("device %s is allocated twice: to claim %s and to claim %s", device, claim, other)
}

// ConditionText describes a condition of a device from [OddConditions].
func ConditionText(driver, device string, c *metav1.Condition) string {
	words := strings.Trim(c.Reason+": "+c.Message, ": ")
	if c.Type == readyCondition && c.Status == metav1.ConditionFalse {
		return fmt.Sprintf("driver %s reports that device %s is not ready: %s", driver, device, words)
	}
	return strings.TrimSuffix(fmt.Sprintf("driver %s reports %s=%s of device %s: %s", driver, c.Type, c.Status, device, words), ": ")
}

// DeviceStatus returns the driver's status of an allocated device, or of the share in the
// result, from the claim; nil if there is none.
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

// DeviceReady reports whether the driver calls an allocated device ready in the status of
// the claim (KEP-4817). Such a device is no fault if it is in no slice: drivers of networks
// do not publish an interface any more that they moved into a pod.
func DeviceReady(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) bool {
	status := DeviceStatus(claim, result)
	return status != nil && apimeta.IsStatusConditionTrue(status.Conditions, readyCondition)
}

// bindingStatus returns the status that the scheduler uses for an allocated device: it does
// not distinguish shares.
func bindingStatus(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *resourceapi.AllocatedDeviceStatus {
	for i := range claim.Status.Devices {
		status := &claim.Status.Devices[i]
		if status.Driver == result.Driver && status.Pool == result.Pool && status.Device == result.Device {
			return status
		}
	}
	return nil
}

func (c *Claims) bindingTimedOut(claim *resourceapi.ResourceClaim) bool {
	allocation := claim.Status.Allocation
	if allocation.AllocationTimestamp == nil {
		return false
	}
	return slices.ContainsFunc(allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return result.BindingConditions != nil
	}) && allocation.AllocationTimestamp.Add(BindingTimeout).Before(c.snap.Now())
}

// Reserved reports whether a claim lists the pod, or its group, as a consumer. A
// reservation for a group counts more than the default of the gate.
func (c *Claims) Reserved(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	return pod.UID != "" && resourceclaim.IsReservedForPod(pod, claim, c.groupsUseClaims())
}

// groupsUseClaims reports whether groups of pods may use claims.
func (c *Claims) groupsUseClaims() bool {
	return c.gates.Enabled(GateWorkloadClaims) || c.gates.known[GateWorkloadClaims].Source == snapshot.GateFromDefault
}

// ReservedByAssumption reports whether the pod may use the claim only because that is
// reserved for the pod's group: nothing else shows that groups can use claims.
func (c *Claims) ReservedByAssumption(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	return c.Reserved(claim, pod) && !resourceclaim.IsReservedForPod(pod, claim, c.gates.Enabled(GateWorkloadClaims))
}

// ConsumerKind returns the kind of a claim's consumer as messages have it: "pod". The
// reference only has the name of the resource.
func ConsumerKind(c *resourceapi.ResourceClaimConsumerReference) string {
	return strings.TrimSuffix(c.Resource, "s")
}

// ConsumerName returns the name of a consumer of a claim: "pod/train-0".
func ConsumerName(c *resourceapi.ResourceClaimConsumerReference) string {
	return ConsumerKind(c) + "/" + c.Name
}

// Consumers lists the consumers that a claim is reserved for, nil if there are none.
func Consumers(claim *resourceapi.ResourceClaim) []api.ObjectRef {
	var consumers []api.ObjectRef
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		kind := ConsumerKind(c)
		switch c.Resource {
		case "pods":
			kind = api.KindPod
		case "podgroups":
			kind = api.KindPodGroup
		}
		consumers = append(consumers, api.Ref(kind, claim.Namespace, c.Name).In(c.APIGroup))
	}
	return consumers
}

// podClaimAnnotation is set by the controller that makes claims from templates.
const podClaimAnnotation = "resource.kubernetes.io/pod-claim-name"

// plannedAnnotation is on a claim that does not exist yet. Its value is the name of the
// ResourceClaimTemplate, empty for the claim for extended resources.
const plannedAnnotation = "dra.kubectl.dev/planned-claim"

// Planned marks a claim as not yet created, from a template or, if that is empty, for
// extended resources. It needs a name that no other claim of the pod has; it is neither the
// final name nor shown to anybody.
func Planned(claim *resourceapi.ResourceClaim, template string) {
	snapshot.Annotate(claim, plannedAnnotation, []string{template})
}

// IsPlanned reports whether a claim does not exist yet, and from which template it will be
// made, empty for the claim for extended resources.
func IsPlanned(claim *resourceapi.ResourceClaim) (template string, planned bool) {
	template, planned = claim.Annotations[plannedAnnotation]
	return template, planned && claim.UID == ""
}

// ClaimTitle identifies a claim of a pod by the name of the claim or, if that does not
// exist yet, of the entry in the pod's spec.resourceClaims.
func ClaimTitle(claim *resourceapi.ResourceClaim) string {
	if _, planned := IsPlanned(claim); planned {
		return claim.Annotations[podClaimAnnotation]
	}
	return claim.Name
}
