// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Decode decodes an object of a known kind into the newest version and returns nil for
// other kinds.
func (d *Decoder) Decode(data []byte, apiVersion, kind string) (metav1.Object, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, &FieldError{"apiVersion", fmt.Errorf("expected a group and a version such as %s, found %q",
			resourceapi.SchemeGroupVersion, apiVersion)}
	}
	switch gv.Group {
	case resourceapi.GroupName:
		if gv.Version == resourceapi.SchemeGroupVersion.Version {
			switch kind {
			case "ResourceSlice":
				return untyped(decodeWith[resourceapi.ResourceSlice](data, d.options))
			case "ResourceClaim":
				return untyped(defaultedClaim(decodeWith[resourceapi.ResourceClaim](data, d.options)))
			}
		}
		return DecodeResource(data, gv.Version, kind)
	case schedulingapi.GroupName:
		if kind == "PodGroup" && gv.Version != "v1alpha1" {
			return untyped(DecodePodGroup(data, gv.Version))
		}
		if kind == "CompositePodGroup" && gv.Version == schedulingv1alpha3.SchemeGroupVersion.Version {
			return untyped(DecodeAs[schedulingv1alpha3.CompositePodGroup](data))
		}
		return nil, nil
	case eventsv1.GroupName:
		if kind == "Event" {
			return relevantEvent(decodeNewEvent(data))
		}
		return nil, nil
	case corev1.GroupName:
		switch kind {
		case "Node":
			return untyped(decodeWith[corev1.Node](data, d.options))
		case "Namespace":
			return untyped(DecodeAs[corev1.Namespace](data))
		case "Pod":
			return untyped(decodeWith[corev1.Pod](data, d.options))
		case "Event":
			return relevantEvent(DecodeAs[corev1.Event](data))
		case "ResourceQuota":
			return untyped(DecodeAs[corev1.ResourceQuota](data))
		case "LimitRange":
			return untyped(DecodeAs[corev1.LimitRange](data))
		case "PersistentVolumeClaim":
			return untyped(DecodeAs[corev1.PersistentVolumeClaim](data))
		case "PersistentVolume":
			return untyped(DecodeAs[corev1.PersistentVolume](data))
		case "ConfigMap":
			return pluginConfigs(DecodeAs[corev1.ConfigMap](data))
		}
	case storageapi.GroupName:
		if kind == "StorageClass" {
			return untyped(DecodeAs[storageapi.StorageClass](data))
		}
		return nil, nil
	case policyapi.GroupName:
		// policy/v1beta1, which Kubernetes 1.25 removed, has the same fields.
		if kind == "PodDisruptionBudget" {
			return untyped(DecodeAs[policyapi.PodDisruptionBudget](data))
		}
		return nil, nil
	}
	if gv.Group == snapshot.OutlineGroup && kind == snapshot.KindOutline {
		return untyped(DecodeAs[snapshot.Outline](data))
	}
	if gv.Group == snapshot.ComputeDomainGroup {
		switch kind {
		case snapshot.KindComputeDomain:
			return untyped(DecodeAs[snapshot.ComputeDomain](data))
		case snapshot.KindClique:
			return untyped(DecodeAs[snapshot.ComputeDomainClique](data))
		}
		return nil, nil
	}
	if (schema.GroupKind{Group: gv.Group, Kind: kind}) == snapshot.ClusterPolicyKind().GroupKind() {
		return untyped(DecodeAs[snapshot.ClusterPolicy](data))
	}
	if gv.Group == snapshot.KueueGroup {
		if kind == snapshot.KindLocalQueue || kind == snapshot.KindClusterQueue {
			if outline := DecodeOutline(data, apiVersion, kind); outline != nil {
				return outline, nil
			}
		}
		if workload, err := DecodeAs[snapshot.QueuedWorkload](data); err == nil && kind == snapshot.QueuedWorkloadKind().Kind {
			return untyped(workload, nil)
		}
		return nil, nil
	}
	if (schema.GroupKind{Group: gv.Group, Kind: kind}) == snapshot.AutoscalerKind() {
		if outline := DecodeOutline(data, apiVersion, kind); outline != nil {
			return outline, nil
		}
		return nil, nil
	}
	if shape := KnownWorkload(gv.Group, kind); shape != NotWorkload {
		return orNil(DecodeWorkload(data, shape))
	}
	if LooksLikeWorkload(data) {
		if workload, err := DecodeWorkload(data, TemplateInSpec); err == nil {
			return workload, nil
		}
	}
	if outline := DecodeOutline(data, apiVersion, kind); outline != nil && ownsPods(gv.Group, outline) {
		return outline, nil
	}
	return nil, nil
}

// DecodeResource decodes an object of resource.k8s.io, nil for other kinds.
func DecodeResource(data []byte, version, kind string) (metav1.Object, error) {
	if err := checkResourceVersion(version, kind); err != nil {
		return nil, err
	}
	switch kind {
	case "ResourceSlice":
		return untyped(decodeSlice(data, version))
	case "DeviceClass":
		return untyped(decodeClass(data, version))
	case "ResourceClaim":
		return untyped(decodeClaim(data, version))
	case "ResourceClaimTemplate":
		return untyped(decodeTemplate(data, version))
	case "DeviceTaintRule":
		return untyped(DecodeTaintRule(data, version))
	case snapshot.KindPoolStatus:
		return decodePoolStatus(data, version)
	default:
		return nil, nil
	}
}

// ErrGone means that no supported release of Kubernetes has the version or the kind of an object.
var ErrGone = errors.New("gone")

// checkResourceVersion refuses what no server has any more, or none that this
// program knows, instead of leaving out objects that decide the answer.
func checkResourceVersion(version, kind string) error {
	replacement := ""
	switch kind {
	case "ResourceClass":
		replacement = "DeviceClass replaced it in Kubernetes 1.31"
	case "ResourceClassParameters":
		replacement = "spec.config of DeviceClass replaced it in Kubernetes 1.31"
	case "ResourceClaimParameters":
		replacement = "spec.devices of ResourceClaim replaced it in Kubernetes 1.31"
	case "PodSchedulingContext":
		replacement = "the scheduler allocates without it since Kubernetes 1.32"
	case "ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate":
		switch version {
		case "v1", "v1beta2", "v1beta1":
			return nil
		case "v1alpha1", "v1alpha2", "v1alpha3":
			return &FieldError{"apiVersion", fmt.Errorf("%s of resource.k8s.io/%s is %w since Kubernetes 1.32: "+
				"expected one of v1, v1beta2, v1beta1", kind, version, ErrGone)}
		}
		return &FieldError{"apiVersion", fmt.Errorf("resource.k8s.io/%s is not known: expected one of v1, v1beta2, v1beta1", version)}
	case "DeviceTaintRule":
		switch version {
		case "v1", "v1beta2", "v1alpha3":
			return nil
		}
		return &FieldError{"apiVersion", fmt.Errorf("resource.k8s.io/%s has no DeviceTaintRule: "+
			"expected one of v1, v1beta2, v1alpha3", version)}
	default:
		return nil
	}
	return fmt.Errorf("%s of resource.k8s.io/%s is %w: %s", kind, version, ErrGone, replacement)
}

// CheckStored, and the functions of each kind that it calls, refuse objects that no API server
// stores, by the rules of pkg/apis/resource/validation and pkg/apis/core/validation of Kubernetes
// v1.37.1 and the limits of k8s.io/api/resource/v1. Whatever works with a snapshot relies on them
// for its time and its memory, and the allocator for its life: a count below zero makes it panic,
// and so does a step of zero.

// CheckStored fails for what no API server has ever stored: numbers, lists and
// names that it refuses.
func CheckStored(object metav1.Object, apiVersion, kind string) error {
	if err := checkMeta(object, kind); err != nil {
		return err
	}
	switch object := object.(type) {
	case *resourceapi.ResourceSlice:
		return checkStoredSlice(&object.Spec, apiVersion)
	case *resourceapi.ResourceClaim:
		if err := checkStoredClaim(&object.Spec.Devices, "spec.devices", apiVersion); err != nil {
			return err
		}
		return firstError(checkStatusLengths(&object.Status), checkStatusNames(&object.Status))
	case *resourceapi.ResourceClaimTemplate:
		return checkStoredClaim(&object.Spec.Spec.Devices, "spec.spec.devices", apiVersion)
	case *resourceapi.DeviceClass:
		return checkStoredClass(&object.Spec)
	case *resourceapi.DeviceTaintRule:
		return checkStoredRule(object)
	case *corev1.Pod:
		return checkPodNames(&object.Spec, "spec")
	case *snapshot.Workload:
		return checkPodNames(&object.Template.Spec, "spec.template.spec")
	case *corev1.Event:
		return Reference(&object.InvolvedObject, "involvedObject")
	}
	return nil
}

// CheckValues fails for a manifest that the API server would reject for
// what it says about devices.
func CheckValues(object metav1.Object, apiVersion string) error {
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		return checkDevices(&object.Spec.Devices, "spec.devices", apiVersion)
	case *resourceapi.ResourceClaimTemplate:
		return checkDevices(&object.Spec.Spec.Devices, "spec.spec.devices", apiVersion)
	case *corev1.Pod:
		return checkPodClaims(&object.Spec, "spec")
	case *snapshot.Workload:
		return checkPodClaims(&object.Template.Spec, templatePath(apiVersion, object.Kind)+".spec")
	}
	return nil
}

// Rejected finds what an API server rejects in an object that is to be created.
// Paths are paths of the newest version.
func Rejected(object metav1.Object, apiVersion string) []*FieldError {
	r := &rejections{}
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		r.claim(&object.Spec.Devices, "spec.devices")
	case *resourceapi.ResourceClaimTemplate:
		r.claim(&object.Spec.Spec.Devices, "spec.spec.devices")
	case *resourceapi.DeviceClass:
		r.class(&object.Spec)
	case *resourceapi.ResourceSlice:
		r.slice(&object.Spec)
	case *resourceapi.DeviceTaintRule:
		r.taintRule(&object.Spec)
	case *corev1.ResourceQuota:
		r.quota(&object.Spec)
	case *corev1.Pod:
		r.pod(&object.Spec, "spec")
	case *snapshot.Workload:
		r.pod(&object.Template.Spec, templatePath(apiVersion, object.Kind)+".spec")
	}
	return r.found
}

// Strip removes from an object, in place, what nothing in this program reads:
// the history of its fields, what containers run, pictures of images. That is
// most of a large cluster's bytes. What decides about scheduling stays.
func Strip(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetSelfLink("")
	stripImpossible(object)
	if annotations := object.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		noteDropped(object, annotations[corev1.LastAppliedConfigAnnotation])
		annotations = object.GetAnnotations()
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if len(annotations) == 0 {
			object.SetAnnotations(nil)
		}
	}
	stripVolumeObject(object)
	switch object := object.(type) {
	case *corev1.Node:
		stripNode(object)
	case *corev1.Pod:
		noteComponent(object)
		if owner := metav1.GetControllerOfNoCopy(object); owner == nil || owner.Kind != snapshot.KindDaemonSet {
			// DaemonSets have their own.
			notePlugin(object, &object.Spec)
		}
		stripPodSpec(&object.Spec)
		stripPodStatus(&object.Status)
	case *snapshot.Workload:
		if object.Kind == snapshot.KindDaemonSet {
			notePlugin(object, &object.Template.Spec)
		}
		stripPodSpec(&object.Template.Spec)
	case *corev1.ConfigMap:
		stripConfigMap(object)
	case *snapshot.ClusterPolicy:
		object.Spec.MIG.Strategy = knownStrategy(object.Spec.MIG.Strategy)
	case *resourceapi.ResourceClaim:
		stripClaim(object)
	case *resourceapi.ResourceClaimTemplate:
		for i := range object.Spec.Spec.Devices.Config {
			canonicalOpaque(object.Spec.Spec.Devices.Config[i].Opaque)
		}
	case *resourceapi.DeviceClass:
		for i := range object.Spec.Config {
			canonicalOpaque(object.Spec.Config[i].Opaque)
		}
	}
}

// noteDropped compares an object with the manifest that kubectl applied.
func noteDropped(object metav1.Object, applied string) {
	gates := snapshot.GatedFields(object)
	if gates == nil {
		return
	}
	var manifest metav1.TypeMeta
	if json.Unmarshal([]byte(applied), &manifest) != nil {
		return
	}
	// Older versions have the same fields in other places.
	intended, err := DecodeResource([]byte(applied), manifest.GroupVersionKind().Version, manifest.Kind)
	if err != nil || intended == nil {
		return
	}
	var dropped []string
	compareFields(asJSON(intended)["spec"], asJSON(object)["spec"], "spec", func(path string) {
		if gates.Of(path) != "" {
			dropped = append(dropped, path)
		}
	})
	if len(dropped) > 0 {
		slices.Sort(dropped)
		snapshot.Annotate(object, snapshot.DroppedFieldsAnnotation, dropped)
	}
}

func asJSON(object any) map[string]any {
	var fields map[string]any
	if encoded, err := json.Marshal(object); err == nil {
		_ = json.Unmarshal(encoded, &fields)
	}
	return fields
}

// compareFields reports the fields of objects that only the wanted one has.
// Lists are compared if they have the same length.
func compareFields(wanted, stored any, path string, missing func(path string)) {
	switch wanted := wanted.(type) {
	case map[string]any:
		stored, ok := stored.(map[string]any)
		if !ok {
			return
		}
		for name, value := range wanted {
			if found, ok := stored[name]; ok {
				compareFields(value, found, path+"."+name, missing)
			} else {
				missing(path + "." + name)
			}
		}
	case []any:
		stored, ok := stored.([]any)
		if !ok || len(stored) != len(wanted) {
			return
		}
		for i := range wanted {
			compareFields(wanted[i], stored[i], fmt.Sprintf("%s[%d]", path, i), missing)
		}
	}
}

// unknownName stands for what cannot be the name of a kind, a resource or an
// object.
const unknownName = "unknown"

// stripImpossible removes from an object references that refer to nothing. The
// API server stores them, since it does not look at the form of these names.
func stripImpossible(object metav1.Object) {
	owners := object.GetOwnerReferences()
	impossible := func(owner metav1.OwnerReference) bool { return Owner(&owner, 0) != nil }
	if slices.ContainsFunc(owners, impossible) {
		object.SetOwnerReferences(slices.DeleteFunc(slices.Clone(owners), impossible))
	}
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		for i := range object.Status.ReservedFor {
			// It stays: somebody has the claim.
			consumer := &object.Status.ReservedFor[i]
			if Consumer(consumer, i) != nil {
				consumer.APIGroup, consumer.Resource, consumer.Name = "", unknownName, unknownName
			}
		}
	case *corev1.Event:
		if Reference(&object.InvolvedObject, "") != nil {
			object.InvolvedObject = corev1.ObjectReference{Kind: unknownName, Name: unknownName}
		}
	}
}

// NeverRead returns the largest fields that [Strip] removes from objects of a
// resource, for [NewReader].
func NeverRead(resource string) []Field {
	always := ReadFields("metadata.managedFields")
	switch resource {
	case snapshot.ResourceNodes:
		return append(always, neverReadOfNodes()...)
	case snapshot.ResourcePods:
		return append(always, neverReadOfPods()...)
	default:
		return always
	}
}

// Object makes an object share parts with those before it. None of them may be changed
// afterwards.
func (s *Sharer) Object(object metav1.Object) {
	object.SetNamespace(s.string(object.GetNamespace()))
	object.SetLabels(s.labels(object.GetLabels()))
	object.SetAnnotations(s.labels(object.GetAnnotations()))
	if names := object.GetFinalizers(); len(names) > 0 {
		object.SetFinalizers(s.finalizers.of(s.hash(names...), names, slices.Equal))
	}
	switch object := object.(type) {
	case *corev1.Node:
		s.node(object)
	case *corev1.Pod:
		s.pod(object)
	case *resourceapi.ResourceClaim:
		s.claim(object)
	case *resourceapi.ResourceSlice:
		s.slice(object)
	}
}

// Redactions lists the types with such fields. The types of one kind stand in its file.
func Redactions() []Redaction {
	return slices.Concat(redactedEverywhere(), redactedNodes(), redactedSlices(), redactedClasses(), redactedClaims(), redactedPods(), redactedGroups(),
		redactedQueues(), redactedDomains(), redactedPlugins(), redactedQuotas(), redactedVolumes(), redactedEvents())
}

// Share makes a decoded object share parts with those before it, like [Sharer.Object]. It comes
// after [Strip], which changes some of these parts. Slices share theirs once they are decoded.
func (d *Decoder) Share(object metav1.Object) {
	if _, ok := object.(*resourceapi.ResourceSlice); !ok {
		d.sharer.Object(object)
	}
}
