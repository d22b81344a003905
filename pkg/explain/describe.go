// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func (x *inquiry) describeAllocator() {
	f := x.site.alloc.Features()
	x.out.Allocator = AllocatorInfo{
		Library: f.Library, Channel: f.Channel, Cluster: f.Cluster, FeatureSource: f.Source, Features: f.Enabled,
	}
}

// maxPods is how many pods an explanation names.
const maxPods = 10

func (x *inquiry) describeUsers() {
	x.out.PodCount = len(x.subject.users)
	for _, pod := range x.subject.users[:min(len(x.subject.users), maxPods)] {
		status := PodStatus{Namespace: pod.Namespace, Name: pod.Name, Phase: string(pod.Status.Phase), Node: pod.Spec.NodeName}
		if !pod.CreationTimestamp.IsZero() {
			status.Since = &pod.CreationTimestamp
			status.AgeSeconds = x.age(pod.CreationTimestamp)
		}
		x.out.Pods = append(x.out.Pods, status)
	}
	if x.subject.pod != nil && !x.subject.hypothetical {
		x.out.SchedulerMessage = x.schedulerMessage(x.subject.pod)
	}
}

func (x *inquiry) age(since metav1.Time) int64 {
	return max(0, int64(x.snap.Now().Sub(since.Time).Seconds()))
}

// schedulerMessage finds what the scheduler said last about a pod: the
// condition if it stands, else the newest event.
func (x *inquiry) schedulerMessage(pod *corev1.Pod) *SchedulerMessage {
	if pod.Spec.NodeName != "" {
		return nil
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			message := &SchedulerMessage{Text: c.Message, Source: "condition PodScheduled"}
			if !c.LastTransitionTime.IsZero() {
				message.Time = &c.LastTransitionTime
			}
			return message
		}
	}
	var newest *corev1.Event
	for _, event := range x.snap.Events {
		if event.Reason != "FailedScheduling" || event.InvolvedObject.Kind != KindPod ||
			event.InvolvedObject.Namespace != pod.Namespace || event.InvolvedObject.Name != pod.Name ||
			event.InvolvedObject.UID != "" && pod.UID != "" && event.InvolvedObject.UID != pod.UID {
			continue
		}
		if newest == nil || eventTime(event).After(eventTime(newest).Time) {
			newest = event
		}
	}
	if newest == nil {
		return nil
	}
	message := &SchedulerMessage{Text: newest.Message, Source: "event FailedScheduling"}
	if t := eventTime(newest); !t.IsZero() {
		message.Time = &t
	}
	return message
}

func eventTime(event *corev1.Event) metav1.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return metav1.NewTime(event.Series.LastObservedTime.Time)
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp
	case !event.EventTime.IsZero():
		return metav1.NewTime(event.EventTime.Time)
	default:
		return event.CreationTimestamp
	}
}

// describeClaims lists the claims and finds those that need devices.
func (x *inquiry) describeClaims() {
	x.subject.claims = slices.DeleteFunc(x.subject.claims, x.servedByPlugin)
	x.out.Claims = make([]ClaimExplanation, 0, len(x.subject.claims))
	for i := range x.subject.claims {
		pc := &x.subject.claims[i]
		explained := ClaimExplanation{PodClaim: pc.Entry, Template: pc.Template, ExtendedResources: pc.ExtendedResources}
		if name := x.claimName(pc); pc.Claim == nil && name != "" {
			explained.Namespace, explained.Name = x.subject.pod.Namespace, name
		}
		if pc.Claim != nil {
			explained.Namespace = pc.Claim.Namespace
			explained.Deleting = pc.Claim.DeletionTimestamp != nil
			if !pc.Generated {
				explained.Name = pc.Claim.Name
			}
			if pc.Claim.Status.Allocation != nil {
				explained.Allocation = x.allocation(pc.Claim)
			} else {
				x.claims = append(x.claims, claimInquiry{claim: pc.Claim, index: i})
			}
		}
		x.out.Claims = append(x.out.Claims, explained)
	}
}

// servedByPlugin says whether the node that a pod is bound to needs no claim
// for its extended resources, since a device plugin has them.
func (x *inquiry) servedByPlugin(pc allocator.PodClaim) bool {
	if !pc.ExtendedResources || !pc.Generated || x.subject.pod.Spec.NodeName == "" {
		return false
	}
	node := x.snap.Node(x.subject.pod.Spec.NodeName)
	if node == nil {
		return false
	}
	claim, err := x.site.alloc.ExtendedResourceClaim(x.subject.pod, node)
	return err == nil && claim == nil
}

func (x *inquiry) allocation(claim *resourceapi.ResourceClaim) *Allocation {
	from := claim.Status.Allocation
	a := &Allocation{Nodes: allocationNodes(from), Devices: make([]AllocatedDevice, 0, len(from.Devices.Results))}
	if from.AllocationTimestamp != nil {
		a.Since, a.AgeSeconds = from.AllocationTimestamp, x.age(*from.AllocationTimestamp)
	}
	for i := range from.Devices.Results {
		device := allocatedDevice(&from.Devices.Results[i])
		id := allocator.DeviceID{Driver: device.Driver, Pool: device.Pool, Device: device.Device}
		device.Missing = x.snap.Gap(snapshot.ResourceSlices) == nil && x.site.alloc.Device(id) == nil
		a.Devices = append(a.Devices, device)
	}
	for _, consumer := range claim.Status.ReservedFor {
		a.ReservedFor = append(a.ReservedFor, strings.TrimSuffix(consumer.Resource, "s")+"/"+consumer.Name)
	}
	return a
}

func allocatedDevice(result *resourceapi.DeviceRequestAllocationResult) AllocatedDevice {
	device := AllocatedDevice{
		Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		AdminAccess: result.AdminAccess != nil && *result.AdminAccess,
	}
	if result.ShareID != nil {
		device.ShareID = string(*result.ShareID)
	}
	for name, quantity := range result.ConsumedCapacity {
		if device.ConsumedCapacity == nil {
			device.ConsumedCapacity = map[string]string{}
		}
		device.ConsumedCapacity[string(name)] = quantity.String()
	}
	return device
}

// allocationNodes says where the devices of an allocation can be used.
func allocationNodes(allocation *resourceapi.AllocationResult) string {
	selector := allocation.NodeSelector
	if selector == nil || len(selector.NodeSelectorTerms) == 0 {
		return "any node"
	}
	var terms []string
	for _, term := range selector.NodeSelectorTerms {
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 1 &&
			term.MatchFields[0].Key == "metadata.name" && len(term.MatchFields[0].Values) == 1 {
			terms = append(terms, term.MatchFields[0].Values[0])
			continue
		}
		var parts []string
		for _, r := range append(term.MatchFields[:len(term.MatchFields):len(term.MatchFields)], term.MatchExpressions...) {
			parts = append(parts, requirementText(r))
		}
		terms = append(terms, "nodes with "+joinAnd(parts))
	}
	return joinOr(terms)
}

func requirementText(r corev1.NodeSelectorRequirement) string {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return r.Key + "=" + strings.Join(r.Values, "|")
	case corev1.NodeSelectorOpNotIn:
		return r.Key + "!=" + strings.Join(r.Values, "|")
	case corev1.NodeSelectorOpExists:
		return r.Key
	case corev1.NodeSelectorOpDoesNotExist:
		return "no " + r.Key
	case corev1.NodeSelectorOpGt:
		return r.Key + ">" + strings.Join(r.Values, "|")
	case corev1.NodeSelectorOpLt:
		return r.Key + "<" + strings.Join(r.Values, "|")
	default:
		return fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, "|"))
	}
}

// allocatedSummary says where the devices are and who has them.
func (x *inquiry) allocatedSummary() string {
	devices, missing := 0, 0
	var places []string
	seen := map[string]bool{}
	for _, claim := range x.out.Claims {
		if claim.Allocation == nil {
			continue
		}
		devices += len(claim.Allocation.Devices)
		for _, d := range claim.Allocation.Devices {
			if d.Missing {
				missing++
			}
		}
		if !seen[claim.Allocation.Nodes] {
			seen[claim.Allocation.Nodes] = true
			places = append(places, claim.Allocation.Nodes)
		}
	}
	if len(places) == 0 {
		return fmt.Sprintf("a device plugin of node %s has the extended resources: there is no claim", x.subject.pod.Spec.NodeName)
	}
	text := fmt.Sprintf("%s for %s", plural(devices, "device"), joinAnd(places))
	if missing > 0 {
		text += fmt.Sprintf("; %d of them in no ResourceSlice any more", missing)
	}
	for i := range x.subject.claims {
		if claim := x.subject.claims[i].Claim; claim != nil && claim.DeletionTimestamp != nil {
			text += fmt.Sprintf("; claim %s is being deleted, which waits for %s", claim.Name, deletionWaitsFor(claim))
		}
	}
	return text
}

// deletionWaitsFor says who keeps a claim that is being deleted.
func deletionWaitsFor(claim *resourceapi.ResourceClaim) string {
	var holders []string
	for _, consumer := range claim.Status.ReservedFor {
		holders = append(holders, strings.TrimSuffix(consumer.Resource, "s")+"/"+consumer.Name)
	}
	if len(holders) == 0 {
		for _, finalizer := range claim.Finalizers {
			holders = append(holders, "finalizer "+finalizer)
		}
	}
	if len(holders) == 0 {
		return "nobody"
	}
	return joinAnd(holders)
}

// claimName is the name of the claim that an entry of the pod refers to.
func (x *inquiry) claimName(pc *allocator.PodClaim) string {
	if x.subject.pod == nil {
		return ""
	}
	for _, entry := range x.subject.pod.Spec.ResourceClaims {
		if entry.Name == pc.Entry && entry.ResourceClaimName != nil {
			return *entry.ResourceClaimName
		}
	}
	return ""
}

// describeStage finds where the target stands in its life.
func (x *inquiry) describeStage() {
	if x.subject.pod != nil && !x.subject.hypothetical {
		x.out.Stage = x.stage(x.subject.pod)
	}
	for i := range x.out.Pods {
		pod := x.subject.users[i]
		if x.subject.pod == pod {
			x.out.Pods[i].Stage = x.out.Stage
		} else {
			x.out.Pods[i].Stage = x.stageOf(pod, x.site.alloc.PodClaims(pod))
		}
	}
	if x.out.Stage == "" && len(x.out.Pods) > 0 && x.subject.target.Kind == KindClaim {
		x.out.Stage = x.out.Pods[0].Stage
	}
	x.nextSteps()
}

func (x *inquiry) stage(pod *corev1.Pod) Stage {
	stage := x.stageOf(pod, x.subject.claims)
	if stage == StageAllocation && len(x.site.candidates) == 0 && len(x.site.unsuitable) > 0 && !x.fitsElsewhere() {
		return StageNodeFit
	}
	return stage
}

// stageOf names the first stage of a pod that is not done.
func (x *inquiry) stageOf(pod *corev1.Pod, claims []allocator.PodClaim) Stage {
	switch {
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return StageCleanup
	case pod.Status.Phase == corev1.PodRunning:
		return StageRunning
	}
	allocated, reserved, bindable := true, true, true
	for i := range claims {
		pc := &claims[i]
		switch {
		case pod.Spec.NodeName != "" && pc.Claim != nil && pc.Claim.Status.Allocation != nil:
			reserved = reserved && x.site.alloc.Reserved(pc.Claim, pod)
		case errors.Is(pc.Problem, allocator.ErrClaimNotCreated), errors.Is(pc.Problem, allocator.ErrTemplateMissing):
			return StageClaimGeneration
		case pc.Problem != nil:
			return StageQueueing
		case pc.Claim == nil || pc.Claim.Status.Allocation == nil:
			allocated = false
		default:
			reserved = reserved && x.site.alloc.Reserved(pc.Claim, pod)
			bindable = bindable && boundConditions(pc.Claim)
		}
	}
	switch {
	case pod.Spec.NodeName != "" && (!allocated || !reserved):
		return StageReservation
	case pod.Spec.NodeName != "":
		return StagePreparation
	case len(pod.Spec.SchedulingGates) > 0:
		return StageQueueing
	case !allocated:
		return StageAllocation
	case !bindable:
		return StageBinding
	case !reserved:
		return StageReservation
	default:
		return StageNodeFit
	}
}

// preparationSteps says what is known of a pod that is bound and not running.
func (x *inquiry) preparationSteps(pod *corev1.Pod) {
	if node := x.snap.Node(pod.Spec.NodeName); node != nil {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				x.out.NextSteps = append(x.out.NextSteps, NextStep{Actor: ActorAdmin, Text: fmt.Sprintf("node %s is not ready: %s", node.Name, c.Message)})
			}
		}
	}
	var newest *corev1.Event
	for _, event := range x.snap.Events {
		if event.Type != corev1.EventTypeWarning || event.InvolvedObject.Kind != KindPod || event.InvolvedObject.Name != pod.Name ||
			event.InvolvedObject.Namespace != pod.Namespace || event.Reason == "FailedScheduling" {
			continue
		}
		if newest == nil || eventTime(event).After(eventTime(newest).Time) {
			newest = event
		}
	}
	if newest != nil {
		x.out.NextSteps = append(x.out.NextSteps, NextStep{Actor: ActorAdmin, Text: fmt.Sprintf("the last warning about the pod is %s: %s", newest.Reason, newest.Message)})
	}
}

// awaitedConditions says which binding conditions of a claim are not true.
func awaitedConditions(claim *resourceapi.ResourceClaim) []string {
	var awaited []string
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		var conditions []metav1.Condition
		if status := allocator.DeviceStatus(claim, result); status != nil {
			conditions = status.Conditions
		}
		for _, name := range result.BindingConditions {
			if !meta.IsStatusConditionTrue(conditions, name) {
				awaited = append(awaited, fmt.Sprintf("driver %s has to set condition %s of device %s/%s", result.Driver, name, result.Pool, result.Device))
			}
		}
	}
	return awaited
}

// boundConditions says whether all binding conditions of a claim are true.
func boundConditions(claim *resourceapi.ResourceClaim) bool {
	return len(awaitedConditions(claim)) == 0
}

// nextSteps says who can do something that needs no proof by the allocator.
func (x *inquiry) nextSteps() {
	add := func(actor, format string, args ...any) {
		x.out.NextSteps = append(x.out.NextSteps, NextStep{Actor: actor, Text: fmt.Sprintf(format, args...)})
	}
	if x.out.Verdict == Undetermined {
		var hidden []string
		for _, gap := range x.snap.Gaps {
			if slices.Contains([]string{snapshot.ResourceNodes, snapshot.ResourceSlices, snapshot.ResourceClasses, snapshot.ResourceClaims, snapshot.ResourceTemplates, snapshot.ResourcePods}, gap.Resource) {
				kind, _, _ := strings.Cut(gap.Resource, ".")
				hidden = append(hidden, kind)
			}
		}
		if len(hidden) > 0 {
			add(ActorAdmin, "whoever may list %s in all namespaces can tell, or take a snapshot for others: kubectl dra snapshot -o cluster.json.gz", joinAnd(hidden))
		}
	}
	pod := x.subject.pod
	for i := range x.subject.claims {
		pc := &x.subject.claims[i]
		switch {
		case pod != nil && !waits(pod):
		case errors.Is(pc.Problem, allocator.ErrTemplateMissing):
			add(ActorUser, "create ResourceClaimTemplate %s in namespace %s, or name another one", pc.Template, pod.Namespace)
		case errors.Is(pc.Problem, allocator.ErrClaimNotCreated) && !x.subject.hypothetical:
			add(ActorNobody, "the resourceclaim controller of kube-controller-manager has not made claim %s of pod %s yet", pc.Entry, pod.Name)
		case errors.Is(pc.Problem, allocator.ErrClaimMissing):
			add(ActorUser, "create ResourceClaim %s in namespace %s, or name another one", x.claimName(pc), pod.Namespace)
		case x.out.Stage == StageBinding && pc.Claim != nil && pc.Claim.Status.Allocation != nil:
			for _, awaited := range awaitedConditions(pc.Claim) {
				add(ActorNobody, "%s; the scheduler waits for it for %s from the allocation", awaited, allocator.BindingTimeout)
			}
		}
	}
	switch {
	case x.out.Stage == StagePreparation && pod != nil:
		x.preparationSteps(pod)
	case x.out.Stage == StageQueueing && x.subject.pod != nil && len(x.subject.pod.Spec.SchedulingGates) > 0:
		gates := make([]string, 0, len(x.subject.pod.Spec.SchedulingGates))
		for _, gate := range x.subject.pod.Spec.SchedulingGates {
			gates = append(gates, gate.Name)
		}
		add(ActorUser, "the scheduler does not look at pod %s before its scheduling gates are removed: %s", x.subject.pod.Name, strings.Join(gates, ", "))
	case pod == nil && x.subject.target.Kind == KindClaim && len(x.claims) > 0 && x.claims[0].claim.UID != "" && len(x.subject.users) == 0:
		add(ActorUser, "no pod uses the claim: it is allocated when the first one does")
	}
}
