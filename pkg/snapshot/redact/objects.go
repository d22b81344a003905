// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// redactObjects walks through all objects, kind by kind.
func redactObjects(r *redactor, s *snapshot.Snapshot) {
	for i := range s.Gaps {
		gap := &s.Gaps[i]
		gap.Namespace = r.swap(tableNamespace, gap.Namespace)
		gap.Reason = r.reason(gap.Reason)
	}
	each(r, s.Namespaces, redactNamespace)
	each(r, s.Classes, redactClass)
	each(r, s.Nodes, redactNode)
	each(r, s.Slices, redactSlice)
	each(r, s.TaintRules, redactTaintRule)
	each(r, s.Templates, redactTemplate)
	each(r, s.Claims, redactClaim)
	each(r, s.PoolStatuses, redactPoolStatus)
	each(r, s.PodGroups, redactPodGroup)
	each(r, s.CompositePodGroups, redactCompositePodGroup)
	each(r, s.Pods, redactPod)
	each(r, s.Workloads, redactWorkload)
	each(r, s.ComputeDomains, redactComputeDomain)
	each(r, s.Cliques, redactClique)
	each(r, s.Queued, redactQueued)
	each(r, s.Outlines, redactOutline)
	each(r, s.Quotas, redactQuota)
	each(r, s.LimitRanges, redactLimitRange)
	each(r, s.VolumeClaims, redactVolumeClaim)
	each(r, s.Volumes, redactPersistentVolume)
	each(r, s.StorageClasses, redactStorageClass)
	each(r, s.Budgets, redactBudget)
	each(r, s.Events, redactEvent)
}

// each redacts all objects of one kind.
func each[T any](r *redactor, list []T, redact func(*redactor, T)) {
	for _, object := range list {
		redact(r, object)
	}
}

func redactNamespace(r *redactor, namespace *corev1.Namespace) {
	r.meta(&namespace.ObjectMeta, tableNamespace)
	for i := range namespace.Status.Conditions {
		namespace.Status.Conditions[i].Message = r.text(namespace.Status.Conditions[i].Message)
	}
}

func redactTaintRule(r *redactor, rule *resourceapi.DeviceTaintRule) {
	r.meta(&rule.ObjectMeta, "DeviceTaintRule")
	r.conditions(rule.Status.Conditions)
	if selector := rule.Spec.DeviceSelector; selector != nil {
		r.pointer(tableNode, selector.Pool)
		if selector.Device != nil {
			*selector.Device = r.device(*selector.Device)
		}
		r.keepPointer(selector.Driver)
	}
	rule.Spec.Taint.Value = r.value(rule.Spec.Taint.Value)
	r.keep(rule.Spec.Taint.Key)
}

func redactTemplate(r *redactor, template *resourceapi.ResourceClaimTemplate) {
	r.meta(&template.ObjectMeta, "ResourceClaimTemplate")
	r.meta(&template.Spec.ObjectMeta, "ResourceClaim")
	redactClaimSpec(r, &template.Spec.Spec)
}

func redactQueued(r *redactor, workload *snapshot.QueuedWorkload) {
	r.meta(&workload.ObjectMeta, "Workload")
	workload.Spec.QueueName = r.swap(snapshot.KindLocalQueue, workload.Spec.QueueName)
	r.conditions(workload.Status.Conditions)
	if workload.Status.Admission != nil {
		workload.Status.Admission.ClusterQueue = r.swap(snapshot.KindClusterQueue, workload.Status.Admission.ClusterQueue)
	}
	for i := range workload.Status.AdmissionChecks {
		check := &workload.Status.AdmissionChecks[i]
		check.Name, check.Message = r.swap("AdmissionCheck", check.Name), r.text(check.Message)
	}
}

// redactOutline keeps the type: owners have it in their references, too.
func redactOutline(r *redactor, outline *snapshot.Outline) {
	r.meta(&outline.ObjectMeta, outline.Of.Kind)
	outline.Spec.ClusterQueue = r.swap(snapshot.KindClusterQueue, outline.Spec.ClusterQueue)
	if ref := outline.Spec.ScaleTargetRef; ref != nil {
		ref.Name = r.swap(ref.Kind, ref.Name)
	}
	r.conditions(outline.Status.Conditions)
}

func redactNode(r *redactor, node *corev1.Node) {
	r.meta(&node.ObjectMeta, tableNode)
	node.Spec.PodCIDR, node.Spec.PodCIDRs, node.Spec.ProviderID = "", nil, ""
	//nolint:staticcheck // A deprecated field can be set all the same, and names objects.
	node.Spec.ConfigSource, node.Status.Config, node.Spec.DoNotUseExternalID = nil, nil, ""
	node.Status.RuntimeHandlers = nil
	for i := range node.Spec.Taints {
		node.Spec.Taints[i].Value = r.taintValue(node.Spec.Taints[i].Value)
	}
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].Type = corev1.NodeConditionType(r.qualified(string(node.Status.Conditions[i].Type)))
		node.Status.Conditions[i].Message = r.text(node.Status.Conditions[i].Message)
	}
	for i := range node.Status.Addresses {
		address := &node.Status.Addresses[i]
		table := tableIP
		if address.Type == corev1.NodeHostName {
			table = tableNode
		}
		address.Address = r.swap(table, address.Address)
	}
	info := &node.Status.NodeInfo
	info.MachineID = r.swap(tableUID, info.MachineID)
	info.SystemUUID = r.swap(tableUID, info.SystemUUID)
	info.BootID = r.swap(tableUID, info.BootID)
}

func redactClass(r *redactor, class *resourceapi.DeviceClass) {
	r.keep(class.Name)
	r.keepPointer(class.Spec.ExtendedResourceName)
	r.meta(&class.ObjectMeta, "DeviceClass")
	r.selectors(class.Spec.Selectors)
	for i := range class.Spec.Config {
		r.opaque(class.Spec.Config[i].Opaque)
	}
}

func redactSlice(r *redactor, slice *resourceapi.ResourceSlice) {
	r.keep(slice.Spec.Driver)
	r.meta(&slice.ObjectMeta, "ResourceSlice")
	slice.Spec.Pool.Name = r.swap(tableNode, slice.Spec.Pool.Name)
	r.pointer(tableNode, slice.Spec.NodeName)
	r.nodeSelector(slice.Spec.NodeSelector)
	for i := range slice.Spec.Devices {
		device := &slice.Spec.Devices[i]
		device.Name = r.device(device.Name)
		r.pointer(tableNode, device.NodeName)
		r.nodeSelector(device.NodeSelector)
		for j := range device.Taints {
			r.keep(device.Taints[j].Key)
			device.Taints[j].Value = r.value(device.Taints[j].Value)
		}
		for name, attribute := range device.Attributes {
			r.keep(string(name))
			if attribute.StringValue != nil {
				*attribute.StringValue = r.attribute(string(name), *attribute.StringValue)
			}
			for k := range attribute.StringValues {
				attribute.StringValues[k] = r.attribute(string(name), attribute.StringValues[k])
			}
		}
	}
}

func redactClaimSpec(r *redactor, spec *resourceapi.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		r.keep(request.Name)
		if request.Exactly != nil {
			r.keep(request.Exactly.DeviceClassName)
			r.selectors(request.Exactly.Selectors)
			r.derived(request.Exactly.DerivedAttributes)
			r.tolerations(request.Exactly.Tolerations)
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			r.keep(alternative.Name)
			r.keep(alternative.DeviceClassName)
			r.selectors(alternative.Selectors)
			r.derived(alternative.DerivedAttributes)
			r.tolerations(alternative.Tolerations)
		}
	}
	for i := range spec.Devices.Config {
		r.opaque(spec.Devices.Config[i].Opaque)
	}
}

func redactClaim(r *redactor, claim *resourceapi.ResourceClaim) {
	r.meta(&claim.ObjectMeta, "ResourceClaim")
	redactClaimSpec(r, &claim.Spec)
	for i := range claim.Status.ReservedFor {
		consumer := &claim.Status.ReservedFor[i]
		consumer.Name = r.swap(consumerKind(consumer.Resource), consumer.Name)
		consumer.UID = types.UID(r.swap(tableUID, string(consumer.UID)))
	}
	if allocation := claim.Status.Allocation; allocation != nil {
		r.nodeSelector(allocation.NodeSelector)
		for i := range allocation.Devices.Results {
			result := &allocation.Devices.Results[i]
			r.keep(result.Driver)
			result.Pool = r.swap(tableNode, result.Pool)
			result.Device = r.device(result.Device)
			r.tolerations(result.Tolerations)
			if result.ShareID != nil {
				*result.ShareID = types.UID(r.swap(tableUID, string(*result.ShareID)))
			}
		}
		for i := range allocation.Devices.Config {
			r.opaque(allocation.Devices.Config[i].Opaque)
		}
	}
	for i := range claim.Status.Devices {
		redactDeviceStatus(r, &claim.Status.Devices[i])
	}
}

// consumerKind returns the table for a plural resource name.
func consumerKind(resource string) string {
	switch resource {
	case "pods":
		return "Pod"
	case "podgroups":
		return tablePodGroup
	default:
		return strings.TrimSuffix(resource, "s")
	}
}

func redactDeviceStatus(r *redactor, status *resourceapi.AllocatedDeviceStatus) {
	status.Pool = r.swap(tableNode, status.Pool)
	status.Device = r.device(status.Device)
	r.pointer(tableUID, status.ShareID)
	r.conditions(status.Conditions)
	if status.Data != nil {
		r.raw(status.Data)
	}
	if network := status.NetworkData; network != nil {
		network.InterfaceName = r.swap("Interface", network.InterfaceName)
		network.HardwareAddress = r.swap("MAC", network.HardwareAddress)
		for i := range network.IPs {
			network.IPs[i] = r.swap(tableIP, network.IPs[i])
		}
	}
}

func redactPodGroup(r *redactor, group *schedulingapi.PodGroup) {
	r.meta(&group.ObjectMeta, tablePodGroup)
	r.pointer(tableCompositePodGroup, group.Spec.ParentCompositePodGroupName)
	if ref := group.Spec.WorkloadRef; ref != nil {
		ref.WorkloadName = r.swap("Workload", ref.WorkloadName)
		ref.TemplateName = r.swap("PodGroupTemplate", ref.TemplateName)
	}
	group.Spec.PriorityClassName = r.priorityClass(group.Spec.PriorityClassName)
	for i := range group.Spec.ResourceClaims {
		claim := &group.Spec.ResourceClaims[i]
		claim.Name = r.swap(tablePodClaim, claim.Name)
		r.pointer("ResourceClaim", claim.ResourceClaimName)
		r.pointer("ResourceClaimTemplate", claim.ResourceClaimTemplateName)
	}
	r.conditions(group.Status.Conditions)
	for i := range group.Status.ResourceClaimStatuses {
		status := &group.Status.ResourceClaimStatuses[i]
		status.Name = r.swap(tablePodClaim, status.Name)
		r.pointer("ResourceClaim", status.ResourceClaimName)
	}
}

func redactCompositePodGroup(r *redactor, group *schedulingv1alpha3.CompositePodGroup) {
	r.meta(&group.ObjectMeta, tableCompositePodGroup)
	r.pointer(tableCompositePodGroup, group.Spec.ParentCompositePodGroupName)
	if ref := group.Spec.WorkloadRef; ref != nil {
		ref.WorkloadName = r.swap("Workload", ref.WorkloadName)
		ref.TemplateName = r.swap("PodGroupTemplate", ref.TemplateName)
	}
	group.Spec.PriorityClassName = r.priorityClass(group.Spec.PriorityClassName)
	r.conditions(group.Status.Conditions)
}

func redactEvent(r *redactor, event *corev1.Event) {
	r.meta(&event.ObjectMeta, "Event")
	r.reference(&event.InvolvedObject)
	if event.Related != nil {
		r.reference(event.Related)
	}
	event.Message = eventMessage(r, event.Message)
	event.Source.Host = r.swap(tableNode, event.Source.Host)
	event.Source.Component = r.componentName(event.Source.Component)
	event.ReportingController = r.componentName(event.ReportingController)
	event.Action = r.text(event.Action)
	event.ReportingInstance = r.text(event.ReportingInstance)
}

// eventMessage redacts what an event says. Names of the claims in a pod are no
// names in other texts: they are often plain words. The resourceclaim
// controller begins with one.
func eventMessage(r *redactor, message string) string {
	const before = "PodResourceClaim "
	rest, found := strings.CutPrefix(message, before)
	if name, said, complete := strings.Cut(rest, ": "); found && complete {
		return before + r.swap(tablePodClaim, name) + ": " + r.text(said)
	}
	return r.text(message)
}

func redactPoolStatus(r *redactor, request *resourcev1alpha3.ResourcePoolStatusRequest) {
	r.meta(&request.ObjectMeta, snapshot.KindPoolStatus)
	r.keep(request.Spec.Driver)
	r.pointer(tableNode, request.Spec.PoolName)
	if request.Status == nil {
		return
	}
	r.conditions(request.Status.Conditions)
	for i := range request.Status.Pools {
		pool := &request.Status.Pools[i]
		r.keep(pool.Driver)
		pool.PoolName = r.swap(tableNode, pool.PoolName)
		r.pointer(tableNode, pool.NodeName)
		if pool.ValidationError != nil {
			*pool.ValidationError = r.text(*pool.ValidationError)
		}
		for j := range pool.PartitionSummary {
			pool.PartitionSummary[j].Type = r.attribute(pool.PartitionSummary[j].Attribute, pool.PartitionSummary[j].Type)
		}
	}
}
