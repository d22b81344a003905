// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// snapshot walks through all objects.
func (r *redactor) snapshot(s *snapshot.Snapshot) {
	for i := range s.Gaps {
		gap := &s.Gaps[i]
		gap.Namespace = r.swap(tableNamespace, gap.Namespace)
		gap.Reason = r.reason(gap.Reason)
	}
	for _, namespace := range s.Namespaces {
		r.meta(&namespace.ObjectMeta, tableNamespace)
		for i := range namespace.Status.Conditions {
			namespace.Status.Conditions[i].Message = r.text(namespace.Status.Conditions[i].Message)
		}
	}
	for _, class := range s.Classes {
		r.class(class)
	}
	for _, node := range s.Nodes {
		r.node(node)
	}
	for _, slice := range s.Slices {
		r.slice(slice)
	}
	for _, rule := range s.TaintRules {
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
	for _, template := range s.Templates {
		r.meta(&template.ObjectMeta, "ResourceClaimTemplate")
		r.meta(&template.Spec.ObjectMeta, "ResourceClaim")
		r.claimSpec(&template.Spec.Spec)
	}
	for _, claim := range s.Claims {
		r.claim(claim)
	}
	for _, request := range s.PoolStatuses {
		r.poolStatus(request)
	}
	for _, group := range s.PodGroups {
		r.podGroup(group)
	}
	for _, pod := range s.Pods {
		r.meta(&pod.ObjectMeta, "Pod")
		r.podSpec(&pod.Spec)
		r.podStatus(&pod.Status)
	}
	for _, workload := range s.Workloads {
		r.meta(&workload.ObjectMeta, workload.Kind)
		r.labelSelector(workload.Selector)
		r.meta(&workload.Template.ObjectMeta, "Pod")
		r.podSpec(&workload.Template.Spec)
	}
	for _, workload := range s.Queued {
		r.meta(&workload.ObjectMeta, "Workload")
		workload.Spec.QueueName = r.swap("LocalQueue", workload.Spec.QueueName)
		r.conditions(workload.Status.Conditions)
	}
	r.optional(s)
	for _, event := range s.Events {
		r.event(event)
	}
}

// reason redacts what an API server said: it quotes users and has URLs.
func (r *redactor) reason(s string) string {
	if r.stage == rewrite {
		s = r.patterns.quoted.ReplaceAllString(s, `"…"`)
		s = r.patterns.url.ReplaceAllString(s, "https://…")
	}
	return r.text(s)
}

// meta redacts metadata of an object whose name is in the given table.
func (r *redactor) meta(m *metav1.ObjectMeta, table string) {
	if table != "DeviceClass" {
		m.Name = r.swap(table, m.Name)
		m.GenerateName = r.swap(tableGenerate, m.GenerateName)
	} else {
		m.GenerateName = ""
	}
	for i := range m.Finalizers {
		m.Finalizers[i] = r.qualified(m.Finalizers[i])
	}
	m.Namespace = r.swap(tableNamespace, m.Namespace)
	m.UID = types.UID(r.swap(tableUID, string(m.UID)))
	m.ManagedFields = nil
	m.SetSelfLink("")
	r.labels(m.Labels)
	m.Annotations = r.annotations(m.Annotations)
	for i := range m.OwnerReferences {
		owner := &m.OwnerReferences[i]
		owner.Name = r.swap(owner.Kind, owner.Name)
		owner.UID = types.UID(r.swap(tableUID, string(owner.UID)))
	}
}

// qualified keeps names with the domains of Kubernetes, and those without a
// domain. Others tell whose they are.
func (r *redactor) qualified(name string) string {
	domain, _, found := strings.Cut(name, "/")
	if !found || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, "k8s.io") {
		return name
	}
	if r.stage != rewrite {
		return r.swap(tableQualified, name)
	}
	return "example.com/" + r.swap(tableQualified, name)
}

// componentName keeps the names of what belongs to Kubernetes, and of drivers.
func (r *redactor) componentName(name string) string {
	if r.stage == collectNames || r.kept[name] {
		return name
	}
	for word := range strings.FieldsFuncSeq(name, func(c rune) bool { return c == '-' || c == '_' }) {
		if !r.words[strings.ToLower(word)] {
			return r.swap("Component", name)
		}
	}
	return name
}

// annotations keeps those that tie a claim to its pod, and this program's own.
func (r *redactor) annotations(annotations map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range annotations {
		switch key {
		case resourceapi.PodResourceClaimAnnotation:
			value = r.swap(tablePodClaim, value)
		case resourceapi.ExtendedResourceClaimAnnotation, snapshot.DroppedFieldsAnnotation, snapshot.PreviewAnnotation, snapshot.SimulatedAnnotation, snapshot.ClassesAnnotation:
		case snapshot.BindCompletedAnnotation:
		case snapshot.SelectedNodeAnnotation:
			value = r.swap(tableNode, value)
		case corev1.BetaStorageClassAnnotation:
			value = r.swap(tableStorageClass, value)
		case snapshot.ReplacedAnnotation:
			value = r.swapAll("ResourceSlice", value)
		case snapshot.KubeletPluginAnnotation:
			value = r.keptNames(value)
		default:
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}

// swapAll replaces a list of names.
func (r *redactor) swapAll(table, list string) string {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = r.swap(table, names[i])
	}
	return strings.Join(names, ",")
}

// keptNames leaves of a list of names only those that stay anyway, such as
// those of drivers.
func (r *redactor) keptNames(list string) string {
	if r.stage != rewrite {
		return list
	}
	return strings.Join(slices.DeleteFunc(strings.Split(list, ","), func(name string) bool { return !r.kept[name] }), ",")
}

func (r *redactor) labels(labels map[string]string) {
	for key, value := range labels {
		labels[key] = r.labelValue(key, value)
	}
}

func (r *redactor) labelValue(key, value string) string {
	switch key {
	case corev1.LabelHostname:
		return r.swap(tableNode, value)
	case corev1.LabelMetadataName:
		return r.swap(tableNamespace, value)
	case corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelInstanceTypeStable, corev1.LabelWindowsBuild,
		"beta.kubernetes.io/arch", "beta.kubernetes.io/os", corev1.LabelInstanceType:
		return value
	}
	switch value {
	case "", "true", "false":
		return value
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil && r.ordered[key] {
		return value
	}
	if r.stage == collectNames {
		// Not yet known which labels are compared as numbers.
		return value
	}
	return r.swap(tableValue, value)
}

func (r *redactor) labelSelector(selector *metav1.LabelSelector) {
	if selector == nil {
		return
	}
	r.labels(selector.MatchLabels)
	for i := range selector.MatchExpressions {
		expression := &selector.MatchExpressions[i]
		for j := range expression.Values {
			expression.Values[j] = r.labelValue(expression.Key, expression.Values[j])
		}
	}
}

func (r *redactor) nodeSelector(selector *corev1.NodeSelector) {
	if selector != nil {
		for i := range selector.NodeSelectorTerms {
			r.nodeTerm(&selector.NodeSelectorTerms[i])
		}
	}
}

func (r *redactor) nodeTerm(term *corev1.NodeSelectorTerm) {
	for i := range term.MatchExpressions {
		requirement := &term.MatchExpressions[i]
		if requirement.Operator == corev1.NodeSelectorOpGt || requirement.Operator == corev1.NodeSelectorOpLt {
			r.ordered[requirement.Key] = true
			continue
		}
		for j := range requirement.Values {
			requirement.Values[j] = r.labelValue(requirement.Key, requirement.Values[j])
		}
	}
	for i := range term.MatchFields {
		for j := range term.MatchFields[i].Values {
			term.MatchFields[i].Values[j] = r.swap(tableNode, term.MatchFields[i].Values[j])
		}
	}
}

func (r *redactor) pointer(table string, name *string) {
	if name != nil {
		*name = r.swap(table, *name)
	}
}

func (r *redactor) keepPointer(word *string) {
	if word != nil {
		r.keep(*word)
	}
}

func (r *redactor) conditions(conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].Message = r.text(conditions[i].Message)
	}
}

func (r *redactor) node(node *corev1.Node) {
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

// taintValue redacts the value of a node's taint or of a toleration of it.
func (r *redactor) taintValue(value string) string {
	if value == "true" || value == "false" {
		return value
	}
	return r.swap(tableValue, value)
}

func (r *redactor) class(class *resourceapi.DeviceClass) {
	r.keep(class.Name)
	r.keepPointer(class.Spec.ExtendedResourceName)
	r.meta(&class.ObjectMeta, "DeviceClass")
	r.selectors(class.Spec.Selectors)
	for i := range class.Spec.Config {
		r.opaque(class.Spec.Config[i].Opaque)
	}
}

func (r *redactor) selectors(selectors []resourceapi.DeviceSelector) {
	for i := range selectors {
		if selectors[i].CEL != nil {
			selectors[i].CEL.Expression = r.expression(selectors[i].CEL.Expression)
		}
	}
}

func (r *redactor) derived(attributes []resourceapi.DeviceDerivedAttribute) {
	for i := range attributes {
		attributes[i].Expression = r.expression(attributes[i].Expression)
	}
}

// opaque replaces parameters, but for what kind they are.
func (r *redactor) opaque(config *resourceapi.OpaqueDeviceConfiguration) {
	if config != nil {
		r.keep(config.Driver)
		r.raw(&config.Parameters)
	}
}

func (r *redactor) raw(raw *runtime.RawExtension) {
	if len(raw.Raw) == 0 {
		return
	}
	pseudonym := r.swap(tableConfig, string(raw.Raw))
	if r.stage != rewrite {
		return
	}
	var kind metav1.TypeMeta
	// Parameters that are no object have no kind.
	_ = json.Unmarshal(raw.Raw, &kind)
	fields := map[string]string{"redacted": pseudonym}
	if kind.Kind != "" {
		fields["apiVersion"], fields["kind"] = kind.APIVersion, kind.Kind
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		encoded = []byte("{}")
	}
	raw.Raw = encoded
}

func (r *redactor) slice(slice *resourceapi.ResourceSlice) {
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

// device keeps the names of devices, unless one of them holds another name.
func (r *redactor) device(name string) string {
	switch r.stage {
	case collectTexts:
		r.renameDevices = r.renameDevices || r.hidesName(name)
		return r.swap(tableDevice, name)
	case rewrite:
		if r.renameDevices {
			return r.swap(tableDevice, name)
		}
	case collectNames:
	}
	return name
}

func (r *redactor) claimSpec(spec *resourceapi.ResourceClaimSpec) {
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

// tolerations redacts those of device taints as these are.
func (r *redactor) tolerations(tolerations []resourceapi.DeviceToleration) {
	for i := range tolerations {
		tolerations[i].Value = r.value(tolerations[i].Value)
	}
}

func (r *redactor) claim(claim *resourceapi.ResourceClaim) {
	r.meta(&claim.ObjectMeta, "ResourceClaim")
	r.claimSpec(&claim.Spec)
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
		r.deviceStatus(&claim.Status.Devices[i])
	}
}

// consumerKind returns the table for a plural resource name.
func consumerKind(resource string) string {
	switch resource {
	case "pods":
		return "Pod"
	case "podgroups":
		return "PodGroup"
	default:
		return strings.TrimSuffix(resource, "s")
	}
}

func (r *redactor) deviceStatus(status *resourceapi.AllocatedDeviceStatus) {
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

func (r *redactor) podGroup(group *schedulingapi.PodGroup) {
	r.meta(&group.ObjectMeta, "PodGroup")
	r.pointer("CompositePodGroup", group.Spec.ParentCompositePodGroupName)
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

func (r *redactor) priorityClass(name string) string {
	if strings.HasPrefix(name, "system-") {
		return name
	}
	return r.swap("PriorityClass", name)
}

func (r *redactor) event(event *corev1.Event) {
	r.meta(&event.ObjectMeta, "Event")
	r.reference(&event.InvolvedObject)
	if event.Related != nil {
		r.reference(event.Related)
	}
	event.Message = r.eventMessage(event.Message)
	event.Source.Host = r.swap(tableNode, event.Source.Host)
	event.Source.Component = r.componentName(event.Source.Component)
	event.ReportingController = r.componentName(event.ReportingController)
	event.Action = r.text(event.Action)
	event.ReportingInstance = r.text(event.ReportingInstance)
}

// eventMessage redacts what an event says. Names of the claims in a pod are no
// names in other texts: they are often plain words. The resourceclaim
// controller begins with one.
func (r *redactor) eventMessage(message string) string {
	const before = "PodResourceClaim "
	rest, found := strings.CutPrefix(message, before)
	if name, said, complete := strings.Cut(rest, ": "); found && complete {
		return before + r.swap(tablePodClaim, name) + ": " + r.text(said)
	}
	return r.text(message)
}

func (r *redactor) reference(ref *corev1.ObjectReference) {
	if ref.Kind != "DeviceClass" {
		ref.Name = r.swap(ref.Kind, ref.Name)
	}
	ref.Namespace = r.swap(tableNamespace, ref.Namespace)
	ref.UID = types.UID(r.swap(tableUID, string(ref.UID)))
	if container, ok := strings.CutSuffix(ref.FieldPath, "}"); ok {
		if field, name, ok := strings.Cut(container, "{"); ok {
			ref.FieldPath = field + "{" + r.swap(tableContainer, name) + "}"
			return
		}
	}
	ref.FieldPath = ""
}

func (r *redactor) poolStatus(request *resourcev1alpha3.ResourcePoolStatusRequest) {
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
