// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Claims lists all ResourceClaims by namespace and name.
func (v *Inventory) Claims() []api.Claim {
	list := make([]api.Claim, 0, len(v.cluster.Snapshot.Claims))
	for _, claim := range v.cluster.Snapshot.Claims {
		list = append(list, describeClaim(v.eligible, claim))
	}
	return list
}

func describeClaim(eligible *eligibility.Devices, claim *resourceapi.ResourceClaim) api.Claim {
	out := api.Claim{
		TypeMeta:  typeMeta("Claim"),
		Namespace: claim.Namespace, Name: claim.Name, Labels: claim.Labels,
		State: claimState(claim), Requests: requestsOf(eligible, claim),
	}
	out.Created, out.AgeSeconds = age(eligible.Facts, claim.CreationTimestamp)
	users := eligible.Facts.Claims.Users(claim.Namespace, claim.Name)
	out.PodCount = len(users)
	for _, pod := range users[:min(len(users), maxPods)] {
		out.Pods = append(out.Pods, pod.Name)
	}
	if len(users) > 0 {
		out.Template = templateOf(users[0], claim)
	}
	for _, domain := range lifecycle.DescribeDomains(eligible.Facts.Snapshot, claim) {
		domain.Nodes = nil
		out.ComputeDomains = append(out.ComputeDomains, domain)
	}
	out.ReservedFor = cluster.Consumers(claim)
	if allocation := claim.Status.Allocation; allocation != nil {
		out.AllocatedAt = allocation.AllocationTimestamp
		out.Node, out.Scope = allocationScope(allocation)
	}
	out.Alignment = AlignmentOf(eligible.Facts, claim)
	out.Flags = claimFlags(eligible, claim)
	return out
}

func claimState(claim *resourceapi.ResourceClaim) api.ClaimState {
	switch {
	case claim.DeletionTimestamp != nil:
		return api.ClaimStateDeleting
	case claim.Status.Allocation == nil:
		return api.ClaimStatePending
	case len(claim.Status.ReservedFor) == 0:
		return api.ClaimStateAllocated
	default:
		return api.ClaimStateReserved
	}
}

// allocationScope tells where allocated devices can be used.
func allocationScope(allocation *resourceapi.AllocationResult) (node, scope string) {
	selector := allocation.NodeSelector
	if selector == nil {
		return "", "all nodes"
	}
	if node = cluster.AllocatedNode(allocation); node != "" {
		return node, node
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

func requestsOf(eligible *eligibility.Devices, claim *resourceapi.ResourceClaim) []api.ClaimRequest {
	requests := make([]api.ClaimRequest, 0, len(claim.Spec.Devices.Requests))
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		out := api.ClaimRequest{Name: r.Name}
		if use, ok := extendedUse(eligible.Facts, claim, r.Name); ok {
			out.ExtendedResource, out.Container = use.ResourceName, use.ContainerName
		}
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
					out.Devices = append(out.Devices, claimDevice(eligible, claim, result))
				}
			}
		}
		requests = append(requests, out)
	}
	return requests
}

// extendedUse finds what a request of the claim for a pod's extended resources
// stands for.
func extendedUse(facts *cluster.Cluster, claim *resourceapi.ResourceClaim, request string) (use corev1.ContainerExtendedResourceRequest, ok bool) {
	for _, pod := range facts.Claims.Users(claim.Namespace, claim.Name) {
		if use, ok = cluster.ExtendedResourceRequest(pod, claim, request); ok {
			break
		}
	}
	return use, ok
}

func claimDevice(eligible *eligibility.Devices, claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) api.ClaimDevice {
	return api.ClaimDevice{
		Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		ShareID:          string(ptr.Deref(result.ShareID, "")),
		ConsumedCapacity: quantities(result.ConsumedCapacity),
		Missing:          missing(eligible, result),
		Status:           StatusOf(claim, result),
	}
}

// missing reports whether it is known that a device is gone: it is not in the
// newest generation of its pool. As long as slices of that generation are
// missing, a device of an earlier generation may be in them.
func missing(eligible *eligibility.Devices, result *resourceapi.DeviceRequestAllocationResult) bool {
	if eligible.Facts.Snapshot.Gap(snapshot.ResourceSlices) != nil || eligible.Facts.Pools.Device(deviceID(result)) != nil {
		return false
	}
	pool, slice := outdated(eligible.Facts, result)
	return pool == nil || !pool.Incomplete && eligible.StillTaken(slice) == 0
}

// outdated finds a slice of an earlier generation that has a device, and its
// pool; nil if there is none.
func outdated(facts *cluster.Cluster, result *resourceapi.DeviceRequestAllocationResult) (*cluster.Pool, *resourceapi.ResourceSlice) {
	for _, pool := range facts.Pools.All() {
		if pool.Driver != result.Driver || pool.Name != result.Pool {
			continue
		}
		for _, slice := range pool.Obsolete {
			if slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return d.Name == result.Device }) {
				return pool, slice
			}
		}
	}
	return nil, nil
}

// NoPodUsesIt says what a claim waits for that WaitsForPod reports.
const NoPodUsesIt = "no pod uses it, and the scheduler allocates claims for pods only"

// WaitsForPod reports whether no pod uses a claim, which then gets no devices. It is
// false where pods could not be read.
func (v *Inventory) WaitsForPod(claim *resourceapi.ResourceClaim) bool {
	return waitsForPod(v.cluster, claim)
}

func waitsForPod(facts *cluster.Cluster, claim *resourceapi.ResourceClaim) bool {
	return snapshot.Pending(claim) && len(facts.Claims.Users(claim.Namespace, claim.Name)) == 0 &&
		podsKnown(facts, claim.Namespace) && !orphaned(facts, claim)
}

// claimFlags returns the unexpected properties of a claim, as far as they are known.
func claimFlags(eligible *eligibility.Devices, claim *resourceapi.ResourceClaim) []api.ClaimFlag {
	var flags []api.ClaimFlag
	flag := func(name api.FlagName, format string, args ...any) {
		flags = append(flags, api.ClaimFlag{Name: name, Message: fmt.Sprintf(format, args...)})
	}
	allocation := claim.Status.Allocation
	podsKnown := podsKnown(eligible.Facts, claim.Namespace)
	awaited := awaited(eligible.Facts, claim)
	if claim.DeletionTimestamp != nil {
		if holders := keepers(claim); len(holders) > 0 {
			flag(api.FlagHeld, "its deletion waits for %s", strings.Join(holders, ", "))
		}
	}
	orphaned := podsKnown && orphaned(eligible.Facts, claim)
	switch {
	case waitsForPod(eligible.Facts, claim):
		flag(api.FlagWaitingForPod, NoPodUsesIt)
	case allocation != nil && len(claim.Status.ReservedFor) == 0 && len(awaited) == 0:
		flag(api.FlagUnreserved, "it has devices, but is reserved for nobody")
	}
	if orphaned {
		flag(api.FlagOrphaned, "it was made for pod %s, which does not exist any more", metav1.GetControllerOfNoCopy(claim).Name)
	}
	for _, consumer := range claim.Status.ReservedFor {
		if why := stale(eligible.Facts, claim.Namespace, consumer); podsKnown && why != "" {
			flag(api.FlagStaleReservation, "it is reserved for pod %s, %s", consumer.Name, why)
		}
	}
	for _, pod := range eligible.Facts.Claims.Users(claim.Namespace, claim.Name) {
		if snapshot.Finished(pod) {
			continue
		}
		podClaims := eligible.Facts.Claims.OfPod(pod)
		for _, unused := range cluster.UnusedClaims(pod, podClaims) {
			at := slices.IndexFunc(podClaims, func(pc cluster.PodClaim) bool { return pc.Entry == unused.Entry })
			if at >= 0 && podClaims[at].Claim != nil && podClaims[at].Claim.Name == claim.Name {
				flag(api.FlagUnused, "pod %s: %s: %s", pod.Name, unused.Text(), unused.Effect())
			}
		}
	}
	if allocation == nil {
		return flags
	}
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		if missing(eligible, result) && !cluster.DeviceReady(claim, result) {
			text := cluster.GoneText(deviceID(result).String())
			if pool, _ := outdated(eligible.Facts, result); pool != nil {
				text = fmt.Sprintf("the newest generation of its pool does not have device %s any more", deviceID(result))
			}
			flag(api.FlagDeviceGone, "%s", text)
		}
		if why := heldTwice(eligible.Facts, claim, result); why != "" && !slices.Contains(flags, api.ClaimFlag{Name: api.FlagDeviceTwice, Message: why}) {
			flag(api.FlagDeviceTwice, "%s", why)
		}
		if health, message := healthSaid(eligible.Facts, cluster.Holder{Claim: claim, Result: result}); health == string(corev1.ResourceHealthStatusUnhealthy) {
			flag(api.FlagDeviceUnhealthy, "device %s is unhealthy%s", deviceID(result), after(": ", message))
		}
		for _, c := range cluster.OddConditions(claim, result) {
			if !slices.ContainsFunc(awaited, func(a cluster.AwaitedCondition) bool { return a.Result == result && a.Name == c.Type }) {
				flag(api.FlagDeviceCondition, "%s", cluster.ConditionText(result.Driver, deviceID(result).String(), &c))
			}
		}
	}
	failed := slices.ContainsFunc(awaited, func(a cluster.AwaitedCondition) bool { return a.Failed })
	for _, a := range awaited {
		switch {
		case a.Failed:
			flag(api.FlagBindingFailed, "driver %s cannot bind device %s: %s", a.Result.Driver, deviceID(a.Result), ConditionText(a.Now))
		case failed:
		case a.Now == nil:
			flag(api.FlagBinding, "its pod is not bound before driver %s sets condition %s of device %s", a.Result.Driver, a.Name, deviceID(a.Result))
		default:
			flag(api.FlagBinding, "its pod is not bound before driver %s sets condition %s of device %s; now it is %s", a.Result.Driver, a.Name, deviceID(a.Result), ConditionText(a.Now))
		}
	}
	return flags
}

// orphaned reports whether a claim was made for a pod that is not there.
func orphaned(facts *cluster.Cluster, claim *resourceapi.ResourceClaim) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil || owner.Kind != "Pod" {
		return false
	}
	pod := facts.Snapshot.Pod(claim.Namespace, owner.Name)
	return pod == nil || pod.UID != "" && pod.UID != owner.UID
}

// awaited lists the conditions for which the binding of pods waits. Once a pod is
// bound, and for a claim that no pod is known to use, nothing waits.
func awaited(facts *cluster.Cluster, claim *resourceapi.ResourceClaim) []cluster.AwaitedCondition {
	waiting := func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil
	}
	if !slices.ContainsFunc(facts.Claims.Users(claim.Namespace, claim.Name), waiting) {
		return nil
	}
	return facts.Claims.Awaited(claim)
}

// after joins a text to what comes before it, if there is any.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

func podsKnown(facts *cluster.Cluster, namespace string) bool {
	gap := facts.Snapshot.Gap(snapshot.ResourcePods)
	return gap == nil || gap.Namespace != "" && gap.Namespace == namespace
}

// keepers lists who keeps a claim that is being deleted.
func keepers(claim *resourceapi.ResourceClaim) []string {
	var holders []string
	for i := range claim.Status.ReservedFor {
		holders = append(holders, cluster.ConsumerName(&claim.Status.ReservedFor[i]))
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
func stale(facts *cluster.Cluster, namespace string, consumer resourceapi.ResourceClaimConsumerReference) string {
	if consumer.APIGroup != "" || consumer.Resource != "pods" {
		return ""
	}
	pod := facts.Snapshot.Pod(namespace, consumer.Name)
	switch {
	case pod == nil:
		return "which does not exist any more"
	case pod.UID != types.UID("") && pod.UID != consumer.UID:
		return "which was replaced by another one of the same name"
	case snapshot.Finished(pod):
		return "which is finished"
	default:
		return ""
	}
}

// heldTwice says why other holders of a device are an error: one of them has it for itself,
// or the shares exceed its capacity.
func heldTwice(facts *cluster.Cluster, claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) string {
	if ptr.Deref(result.AdminAccess, false) {
		return ""
	}
	id, again := deviceID(result), false
	for _, h := range facts.Usage.Holders(id) {
		switch {
		case h.Result == result || ptr.Deref(h.Result.AdminAccess, false) || h.Result.ShareID != nil && result.ShareID != nil:
		case h.Claim == claim:
			again = true
		default:
			return cluster.TwiceText(id.String(), english.QualifiedName(claim), english.QualifiedName(h.Claim))
		}
	}
	if again {
		return fmt.Sprintf("device %s is allocated to this claim more than once", id)
	}
	d := facts.Pools.Device(id)
	if d == nil || result.ShareID == nil {
		return ""
	}
	consumed := facts.Usage.Consumed(id)
	for _, name := range slices.Sorted(maps.Keys(consumed)) {
		used := consumed[name]
		if total, ok := d.Capacity[name]; ok && used.Cmp(total.Value) > 0 {
			return fmt.Sprintf("shares of device %s take %s of capacity %s, which is %s", id, selector.QuantityText(used), selector.Qualified(name, id.Driver), selector.QuantityText(total.Value))
		}
	}
	return ""
}

// maxPods limits how many pods a holder names.
const maxPods = 10

// StatusOf picks what people look for in what the driver says about an allocated
// device in the status of its claim; nil if it says nothing.
func StatusOf(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *api.DeviceStatus {
	status := cluster.DeviceStatus(claim, result)
	if status == nil {
		return nil
	}
	out := &api.DeviceStatus{Conditions: status.Conditions}
	for _, c := range cluster.OddConditions(claim, result) {
		out.Odd = append(out.Odd, c.Type)
	}
	if status.Data != nil {
		out.Data = plainJSON(status.Data.Raw)
	}
	if network := status.NetworkData; network != nil {
		out.Interface, out.IPs, out.HardwareAddress = network.InterfaceName, network.IPs, network.HardwareAddress
	}
	return out
}

// plainJSON returns a JSON text with its strings written as everywhere in the output:
// readers of YAML do not understand all escapes of JSON. One with a key that is too long
// for them becomes a string. It is nil for what is not JSON.
func plainJSON(raw []byte) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if !json.Valid(raw) || decoder.Decode(&value) != nil {
		return nil
	}
	plain, err := json.Marshal(value)
	if err == nil && hasLongKey(value) {
		plain, err = json.Marshal(string(plain))
	}
	if err != nil {
		return nil
	}
	return plain
}

// maxKey limits how long a key may be, in bytes. Readers of YAML take at most 1,024
// characters before a colon, and one byte may be written as six.
const maxKey = 160

// hasLongKey reports whether there is a longer key in a JSON value.
func hasLongKey(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			if len(key) > maxKey || hasLongKey(element) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasLongKey)
	}
	return false
}

// ConditionText returns "Ready=False: NoCarrier: the cable is unplugged".
func ConditionText(c *metav1.Condition) string {
	text := c.Type + "=" + string(c.Status)
	for _, part := range []string{c.Reason, c.Message} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// healthSaid returns the worst that kubelets say about a device that a claim has. A kubelet
// leaves what it said last in the status of a pod that finished, and it says nothing about
// a device that the pod only waits for.
func healthSaid(facts *cluster.Cluster, holder cluster.Holder) (health, message string) {
	var running []*corev1.Pod
	for _, pod := range facts.Claims.Users(holder.Claim.Namespace, holder.Claim.Name) {
		if !snapshot.Finished(pod) && uses(facts, pod, holder.Claim) {
			running = append(running, pod)
		}
	}
	for _, h := range facts.Claims.HealthOf(holder, running) {
		if worse(string(h.Status), health) {
			health, message = string(h.Status), h.Message
		}
	}
	return health, message
}

// healthOf returns the worst that kubelets say about a device.
func healthOf(facts *cluster.Cluster, d *cluster.Device) (health, message string) {
	for _, holder := range facts.Usage.Holders(d.ID) {
		if said, why := healthSaid(facts, holder); worse(said, health) {
			health, message = said, why
		}
	}
	return health, message
}

// worse reports whether a state of health is worse than another; the empty one is the best.
func worse(a, b string) bool {
	order := []string{"", string(corev1.ResourceHealthStatusHealthy), string(corev1.ResourceHealthStatusUnknown), string(corev1.ResourceHealthStatusUnhealthy)}
	return slices.Index(order, a) > slices.Index(order, b)
}
