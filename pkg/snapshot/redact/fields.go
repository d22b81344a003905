// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"maps"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// redactor knows how fields are redacted that objects of several kinds have.
type redactor struct {
	*texts
	// ordered has the keys of node labels that are compared as numbers.
	ordered map[string]bool
	// renameDevices is true if a device's name holds another name.
	renameDevices bool
}

func newRedactor() *redactor { return &redactor{texts: newTexts(), ordered: map[string]bool{}} }

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
		r.keep(m.Name)
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
		case resourceapi.ExtendedResourceClaimAnnotation, snapshot.DroppedFieldsAnnotation, snapshot.PreviewAnnotation, snapshot.SimulatedAnnotation, snapshot.ClassesAnnotation, snapshot.ComponentAnnotation:
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
	case snapshot.ComputeDomainLabel:
		return r.swap(tableUID, value)
	case corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelInstanceTypeStable, corev1.LabelWindowsBuild,
		"beta.kubernetes.io/arch", "beta.kubernetes.io/os", corev1.LabelInstanceType,
		// NVIDIA's GPU feature discovery says with them how GPUs are shared.
		"nvidia.com/gpu.count", "nvidia.com/gpu.product", "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy", "nvidia.com/mig.strategy":
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

// pluginConfigs redacts the names of configurations of device plugins: labels of nodes have them as values.
func (r *redactor) pluginConfigs(configs map[string]string) {
	texts := maps.Clone(configs)
	clear(configs)
	for name, text := range texts {
		configs[r.taintValue(name)] = text
	}
}

func (r *redactor) labelValues(key string, values []string) {
	for i := range values {
		values[i] = r.labelValue(key, values[i])
	}
}

func (r *redactor) nodeTerm(term *corev1.NodeSelectorTerm) {
	for i := range term.MatchExpressions {
		requirement := &term.MatchExpressions[i]
		if requirement.Operator == corev1.NodeSelectorOpGt || requirement.Operator == corev1.NodeSelectorOpLt {
			r.ordered[requirement.Key] = true
			continue
		}
		r.labelValues(requirement.Key, requirement.Values)
	}
	for i := range term.MatchFields {
		for j := range term.MatchFields[i].Values {
			term.MatchFields[i].Values[j] = r.swap(tableNode, term.MatchFields[i].Values[j])
		}
	}
}

// taintValue redacts the value of a node's taint or of a toleration of it.
func (r *redactor) taintValue(value string) string {
	if value == "true" || value == "false" {
		return value
	}
	return r.swap(tableValue, value)
}

// opaque replaces parameters, but for what kind they are.
func (r *redactor) opaque(config *resourceapi.OpaqueDeviceConfiguration) {
	r.keep(config.Driver)
	if config.Driver != snapshot.ComputeDomainDriver || !r.domainConfig(&config.Parameters) {
		r.raw(&config.Parameters)
	}
}

// domainConfig replaces the UID of a ComputeDomain in parameters, and keeps the rest: what
// the driver accepts has no other names. It reports whether they are such parameters.
func (r *redactor) domainConfig(parameters *runtime.RawExtension) bool {
	config := kinds.ParseDomainConfig(parameters.Raw)
	if config.Problem != "" || config.AllocationMode != "" && config.AllocationMode != "All" && config.AllocationMode != "Single" {
		return false
	}
	pseudonym := r.swap(tableUID, config.DomainID)
	if r.stage != rewrite {
		return true
	}
	fields := map[string]string{"apiVersion": snapshot.ComputeDomainGroup + "/" + snapshot.ComputeDomainVersion, "kind": config.Kind, "domainID": pseudonym}
	if config.AllocationMode != "" {
		fields["allocationMode"] = config.AllocationMode
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return false
	}
	parameters.Raw = encoded
	return true
}

func (r *redactor) raw(raw *runtime.RawExtension) {
	if raw == nil || len(raw.Raw) == 0 {
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

func (r *redactor) priorityClass(name string) string {
	if strings.HasPrefix(name, "system-") {
		return name
	}
	return r.swap("PriorityClass", name)
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

// wholeTypes lists functions for the types in which one field decides how another is redacted.
func wholeTypes() map[reflect.Type]func(*redactor, any) {
	whole := map[reflect.Type]func(*redactor, any){}
	of(whole, func(r *redactor, o *snapshot.Workload) { r.meta(&o.ObjectMeta, o.Kind) })
	of(whole, func(r *redactor, o *snapshot.Outline) { r.meta(&o.ObjectMeta, o.Of.Kind) })
	of(whole, func(r *redactor, ref *snapshot.ScaleTarget) { ref.Name = r.swap(ref.Kind, ref.Name) })
	of(whole, (*redactor).reference)
	of(whole, (*redactor).opaque)
	of(whole, (*redactor).nodeTerm)
	of(whole, (*redactor).volumeClaim)
	of(whole, func(r *redactor, device *resourceapi.Device) {
		for name, attribute := range device.Attributes {
			r.keep(string(name))
			if attribute.StringValue != nil {
				*attribute.StringValue = r.attribute(string(name), *attribute.StringValue)
			}
			for k := range attribute.StringValues {
				attribute.StringValues[k] = r.attribute(string(name), attribute.StringValues[k])
			}
		}
	})
	of(whole, func(r *redactor, summary *resourcev1alpha3.PartitionTypeStatus) {
		summary.Type = r.attribute(summary.Attribute, summary.Type)
	})
	of(whole, func(r *redactor, consumer *resourceapi.ResourceClaimConsumerReference) {
		consumer.Name = r.swap(consumerKind(consumer.Resource), consumer.Name)
		consumer.UID = types.UID(r.swap(tableUID, string(consumer.UID)))
	})
	of(whole, func(r *redactor, address *corev1.NodeAddress) {
		table := tableIP
		if address.Type == corev1.NodeHostName {
			table = tableNode
		}
		address.Address = r.swap(table, address.Address)
	})
	of(whole, func(r *redactor, requirement *metav1.LabelSelectorRequirement) {
		r.labelValues(requirement.Key, requirement.Values)
	})
	of(whole, func(r *redactor, requirement *corev1.TopologySelectorLabelRequirement) {
		r.labelValues(requirement.Key, requirement.Values)
	})
	return whole
}

func of[T any](whole map[reflect.Type]func(*redactor, any), redact func(*redactor, *T)) {
	whole[reflect.TypeFor[T]()] = func(r *redactor, v any) {
		if value, ok := v.(*T); ok {
			redact(r, value)
		}
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

// volumeClaim redacts the metadata of a claim. The claim of an ephemeral volume is found by the
// names of pod and volume.
func (r *redactor) volumeClaim(claim *corev1.PersistentVolumeClaim) {
	name, owner := claim.Name, metav1.GetControllerOfNoCopy(claim)
	ephemeral := owner != nil && owner.Kind == "Pod" && strings.HasPrefix(name, owner.Name+"-")
	if ephemeral {
		name = r.swap("Pod", owner.Name) + "-" + r.swap(tableVolume, strings.TrimPrefix(name, owner.Name+"-"))
	}
	r.meta(&claim.ObjectMeta, "PersistentVolumeClaim")
	if ephemeral {
		claim.Name = name
	}
}

// quantities replaces the StorageClasses in names of resources.
func (r *redactor) quantities(list corev1.ResourceList) {
	const suffix = ".storageclass.storage.k8s.io/"
	for name, quantity := range maps.Clone(list) {
		class, resource, found := strings.Cut(string(name), suffix)
		if !found {
			continue
		}
		pseudonym := r.swap(tableStorageClass, class)
		if r.stage == rewrite {
			delete(list, name)
			list[corev1.ResourceName(pseudonym+suffix+resource)] = quantity
		}
	}
}

// claimOfPod redacts "claim:POD_CLAIM/REQUEST".
func (r *redactor) claimOfPod(name string) string {
	claim, ok := strings.CutPrefix(name, "claim:")
	if !ok {
		return name
	}
	claim, request, hasRequest := strings.Cut(claim, "/")
	claim = "claim:" + r.swap(tablePodClaim, claim)
	if hasRequest {
		claim += "/" + request
	}
	return claim
}

// deviceInPool redacts "DRIVER/POOL/DEVICE".
func (r *redactor) deviceInPool(id string) string {
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		return r.text(id)
	}
	return parts[0] + "/" + r.swap(tableNode, parts[1]) + "/" + r.device(parts[2])
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

func (r *redactor) scheduler(name string) string {
	if name == corev1.DefaultSchedulerName {
		return name
	}
	return r.swap("Scheduler", name)
}
