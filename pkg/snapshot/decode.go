// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// KindSnapshot is the kind of the header of a saved snapshot.
const KindSnapshot = "Snapshot"

// Header is what a saved snapshot says besides its objects.
type Header struct {
	metav1.TypeMeta `json:",inline"`
	TakenAt         *time.Time      `json:"takenAt,omitempty"`
	ServerVersion   string          `json:"serverVersion,omitempty"`
	Gates           map[string]Gate `json:"gates,omitempty"`
	Gaps            []Gap           `json:"gaps,omitempty"`
	// Listed is [Snapshot.Listed].
	Listed []string `json:"listed,omitempty"`
}

// place is where in the input an object was.
type place struct {
	file string
	// document counts from 1; item too, and is 0 outside of a List.
	document, item int
	list           string
}

func (p place) String() string {
	if p.item == 0 {
		return fmt.Sprintf("%s, document %d", p.file, p.document)
	}
	return fmt.Sprintf("%s, document %d, item %d", p.file, p.document, p.item)
}

// record is a decoded object and where it came from.
type record struct {
	object metav1.Object
	place  place
}

// decoded is what a part of the input holds.
type decoded struct {
	records []record
	headers []Header
	gaps    []Gap
	skipped map[string]int
	// skippedNames has the skipped objects of manifests: "Service ml/web".
	skippedNames []string
	// listed has the kinds of which there was a typed list, even an empty one.
	listed []string
	// documents counts everything that was an object, skipped or not.
	documents int
	// purpose tells how to judge the objects: but for those of a cluster, as the
	// API server judges what is about to be applied. It is set before decoding.
	purpose purpose
}

func (d *decoded) merge(other *decoded) {
	d.records = append(d.records, other.records...)
	d.headers = append(d.headers, other.headers...)
	d.gaps = append(d.gaps, other.gaps...)
	d.skippedNames = append(d.skippedNames, other.skippedNames...)
	d.listed = append(d.listed, other.listed...)
	d.documents += other.documents
	for kind, count := range other.skipped {
		d.skip(kind, count)
	}
}

func (d *decoded) skip(kind string, count int) {
	if d.skipped == nil {
		d.skipped = map[string]int{}
	}
	d.skipped[kind] += count
}

// maxListDepth bounds Lists in Lists.
const maxListDepth = 8

// document decodes the JSON object in data: one object or a List.
func (d *decoded) document(data []byte, at place) error {
	return d.nested(data, at, "", "", 0)
}

// nested decodes an object or a List. The list that the object is in says what
// items without a kind are.
func (d *decoded) nested(data []byte, at place, apiVersion, kind string, depth int) error {
	ownVersion, ownKind, err := peekKind(data)
	if err != nil {
		return inputError(at, "", &syntaxError{err: err})
	}
	if ownKind == "" {
		ownVersion, ownKind = apiVersion, kind
	}
	if ownKind == "" {
		return inputError(at, "", errors.New("expected a Kubernetes object, found one without apiVersion and kind"))
	}
	if err := checkType(ownVersion, ownKind); err != nil {
		return inputError(at, "", err)
	}
	if !strings.HasSuffix(ownKind, "List") && ownKind != KindSnapshot {
		return d.object(data, at, ownVersion, ownKind)
	}
	o, err := outlineObject(data, 0)
	if err != nil {
		return inputError(at, ownKind, &syntaxError{err: err})
	}
	if ownKind == KindSnapshot && d.purpose == asPreview {
		return inputError(at, ownKind, fmt.Errorf("%w; that is for --snapshot", notPreview(ownVersion, ownKind)))
	}
	if ownKind == KindSnapshot {
		if err := d.header(data, at, ownVersion); err != nil {
			return err
		}
	} else if !o.isList {
		return d.object(data, at, ownVersion, ownKind)
	}
	if depth == maxListDepth {
		return inputError(at, ownKind, fmt.Errorf("lists are nested more than %d deep", maxListDepth))
	}
	d.documents++
	apiVersion, kind = itemKind(ownVersion, ownKind)
	if kind != "" {
		d.listed = append(d.listed, kind)
	}
	for i, item := range o.items {
		within := at
		within.item, within.list = i+1, ownKind
		if err := d.nested(data[item.from:item.to], within, apiVersion, kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// itemKind returns what the items of a typed list are if they do not say.
func itemKind(listVersion, listKind string) (apiVersion, kind string) {
	if listKind == KindSnapshot || listKind == "List" {
		return "", ""
	}
	return listVersion, strings.TrimSuffix(listKind, "List")
}

func (d *decoded) header(data []byte, at place, apiVersion string) error {
	if apiVersion != api.APIVersion {
		return inputError(at, KindSnapshot, &fieldError{"apiVersion", fmt.Errorf(
			"expected %s, found %q; was it saved by a newer version of this program?", api.APIVersion, apiVersion)})
	}
	text := withoutItems(data)
	if err := checkSize(text); err != nil {
		return inputError(at, KindSnapshot, err)
	}
	h, err := decodeAs[Header](text)
	if err != nil {
		return inputError(at, KindSnapshot, err)
	}
	if err := checkHeader(h); err != nil {
		return inputError(at, KindSnapshot, err)
	}
	for i := range h.Gaps {
		resource, ok := resourceOfGap(h.Gaps[i].Resource)
		if !ok {
			return inputError(at, KindSnapshot, &fieldError{fmt.Sprintf("gaps[%d].resource", i), fmt.Errorf(
				"expected one of %s, or another resource with its group, found %q", strings.Join(heldResources(), ", "), h.Gaps[i].Resource)})
		}
		h.Gaps[i].Resource = resource
	}
	d.headers = append(d.headers, *h)
	return nil
}

// resourceOfGap completes what a header calls a resource: the group may be left
// out. It is not ok if no gap can be about that, so that it would go unnoticed.
// What other groups have may be the target of a question.
func resourceOfGap(name string) (resource string, ok bool) {
	for _, held := range heldResources() {
		if plural, _, _ := strings.Cut(held, "."); name == held || name == plural {
			return held, true
		}
	}
	if name == "replicationcontrollers" || name == "podtemplates" {
		return name, true
	}
	plural, group, _ := strings.Cut(name, ".")
	return name, plural != "" && group != "" && group != resourceapi.GroupName
}

// withoutItems copies a JSON object without its field "items".
func withoutItems(data []byte) []byte {
	out := []byte{'{'}
	_, _ = eachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := skipValue(data, at)
		if err != nil || string(key) == "items" {
			return end, true, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), key...), `":`...)
		out = append(out, data[at:end]...)
		return end, true, nil
	})
	return append(out, '}')
}

// object decodes one object that is not a List.
func (d *decoded) object(data []byte, at place, apiVersion, kind string) error {
	d.documents++
	if err := checkSize(data); err != nil {
		return inputError(at, describeObject(data, kind), err)
	}
	if d.purpose == asPreview && (kind != "ResourceSlice" || groupOf(apiVersion).Group != draGroup) {
		return inputError(at, describeObject(data, kind), notPreview(apiVersion, kind))
	}
	object, err := decodeObject(data, apiVersion, kind)
	if errors.Is(err, errDroppedSelector) && d.purpose == asCluster {
		_, name := peekName(data)
		d.gaps = append(d.gaps, Gap{
			Resource: ResourceTaintRules,
			Reason:   fmt.Sprintf("DeviceTaintRule %s is left out: %v", name, err),
		})
		return nil
	}
	if err != nil {
		return inputError(at, describeObject(data, kind), err)
	}
	if d.purpose != asCluster {
		if err := checkManifest(data, apiVersion, kind); err != nil {
			return inputError(at, describeObject(data, kind), err)
		}
	}
	if object == nil {
		if err := checkText(data); err != nil {
			return inputError(at, describeObject(data, kind), err)
		}
		d.skip(fmt.Sprintf("%s, Kind=%s", apiVersion, kind), 1)
		if d.purpose != asCluster {
			d.skippedNames = append(d.skippedNames, strings.Replace(describeObject(data, kind), "/", " ", 1))
		}
		return nil
	}
	err = firstError(checkNumbers(object, apiVersion), checkLengths(object, apiVersion), checkIdentity(object, kind))
	if err == nil && d.purpose != asCluster {
		err = checkValues(object, apiVersion)
	}
	if err != nil {
		return inputError(at, describeObject(data, kind), err)
	}
	if object.GetName() == "" {
		if object.GetGenerateName() == "" {
			return inputError(at, kind, &fieldError{"metadata.name", errors.New("expected a name, found none")})
		}
		object.SetName(object.GetGenerateName() + generatedSuffix)
	}
	Strip(object)
	d.records = append(d.records, record{object, at})
	return nil
}

// generatedSuffix stands for the random part of a generated name in the
// manifest of an object that has only metadata.generateName.
const generatedSuffix = "xxxxx"

// decodeObject decodes an object of a known kind into the newest version and
// returns nil for those of other kinds.
func decodeObject(data []byte, apiVersion, kind string) (metav1.Object, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, &fieldError{"apiVersion", fmt.Errorf("expected a group and a version such as %s, found %q",
			resourceapi.SchemeGroupVersion, apiVersion)}
	}
	switch gv.Group {
	case resourceapi.GroupName:
		return decodeResource(data, gv.Version, kind)
	case schedulingapi.GroupName:
		if kind == "PodGroup" && gv.Version != "v1alpha1" {
			return untyped(decodePodGroup(data, gv.Version))
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
			return untyped(decodeAs[corev1.Node](data))
		case "Namespace":
			return untyped(decodeAs[corev1.Namespace](data))
		case "Pod":
			return untyped(decodeAs[corev1.Pod](data))
		case "Event":
			return relevantEvent(decodeAs[corev1.Event](data))
		case "ResourceQuota":
			return untyped(decodeAs[corev1.ResourceQuota](data))
		case "LimitRange":
			return untyped(decodeAs[corev1.LimitRange](data))
		case "PersistentVolumeClaim":
			return untyped(decodeAs[corev1.PersistentVolumeClaim](data))
		case "PersistentVolume":
			return untyped(decodeAs[corev1.PersistentVolume](data))
		}
	case storageapi.GroupName:
		if kind == "StorageClass" {
			return untyped(decodeAs[storageapi.StorageClass](data))
		}
		return nil, nil
	}
	if gv.Group == kueueGroup {
		if workload, err := decodeAs[QueuedWorkload](data); err == nil && kind == QueuedWorkloadKind().Kind {
			return untyped(workload, nil)
		}
		return nil, nil
	}
	if shape := knownWorkload(gv.Group, kind); shape != notWorkload {
		return orNil(decodeWorkload(data, shape))
	}
	if looksLikeWorkload(data) {
		if workload, err := decodeWorkload(data, templateInSpec); err == nil {
			return workload, nil
		}
	}
	return nil, nil
}

func decodeResource(data []byte, version, kind string) (metav1.Object, error) {
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
		return untyped(decodeTaintRule(data, version))
	case KindPoolStatus:
		return decodePoolStatus(data, version)
	default:
		return nil, nil
	}
}

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
			return &fieldError{"apiVersion", fmt.Errorf("%s of resource.k8s.io/%s is gone since Kubernetes 1.32: "+
				"expected one of v1, v1beta2, v1beta1", kind, version)}
		}
		return &fieldError{"apiVersion", fmt.Errorf("resource.k8s.io/%s is not known: expected one of v1, v1beta2, v1beta1", version)}
	case "DeviceTaintRule":
		switch version {
		case "v1", "v1beta2", "v1alpha3":
			return nil
		}
		return &fieldError{"apiVersion", fmt.Errorf("resource.k8s.io/%s has no DeviceTaintRule: "+
			"expected one of v1, v1beta2, v1alpha3", version)}
	default:
		return nil
	}
	return fmt.Errorf("%s of resource.k8s.io/%s is gone: %s", kind, version, replacement)
}

// untyped removes apiVersion and kind, as a client does: all objects are of
// the newest version anyway.
func untyped[T any, P interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](object *T, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	P(object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return P(object), nil
}

// orNil makes an untyped nil of a typed one.
func orNil(workload *Workload, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	return workload, nil
}

// relevantEvent drops events about things that have nothing to do with claims.
func relevantEvent(event *corev1.Event, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	switch event.InvolvedObject.Kind {
	case "Node", "Namespace", "ConfigMap", "Secret", "Service", "Endpoints", "EndpointSlice", "Ingress",
		"PersistentVolume", "PersistentVolumeClaim", "HorizontalPodAutoscaler", "PodDisruptionBudget",
		"ServiceAccount", "Lease":
		return nil, nil
	}
	return untyped(event, nil)
}

// inputError places an error. at.item and what becomes the name of the object.
func inputError(at place, what string, err error) *InputError {
	e := &InputError{Path: at.file, Document: at.document, Object: what, Err: err}
	if at.item > 0 {
		e.Object = fmt.Sprintf("item %d of %s", at.item, at.list)
		if what != "" {
			e.Object += " (" + what + ")"
		}
	}
	var field *fieldError
	if errors.As(err, &field) {
		e.Field, e.Err = field.field, field.err
	}
	return e
}

// describeObject names an object that may not be decodable.
func describeObject(data []byte, kind string) string {
	namespace, name := peekName(data)
	switch {
	case name == "":
		return kind
	case namespace == "":
		return kind + "/" + name
	default:
		return kind + "/" + namespace + "/" + name
	}
}

// peekName finds the name of an object that may not be decodable.
func peekName(data []byte) (namespace, name string) {
	_, _ = eachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := skipValue(data, at)
		if err != nil || string(key) != "metadata" {
			return end, true, err
		}
		_, err = eachField(data[at:end], 0, func(key []byte, from int) (int, bool, error) {
			to, err := skipValue(data[at:end], from)
			if value := data[at:end][from:to]; err == nil && len(value) > 1 && value[0] == '"' {
				switch string(key) {
				case "namespace":
					namespace = string(value[1 : len(value)-1])
				case "name":
					name = string(value[1 : len(value)-1])
				}
			}
			return to, true, err
		})
		return end, false, err
	})
	return namespace, name
}
