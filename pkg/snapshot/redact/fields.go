// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

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

// redactor knows how fields are redacted that objects of several kinds have.
type redactor struct {
	*texts
	// ordered has the keys of node labels that are compared as numbers.
	ordered map[string]bool
	// renameDevices is true if a device's name holds another name.
	renameDevices bool
}

func newRedactor() *redactor { return &redactor{texts: newTexts(), ordered: map[string]bool{}} }
