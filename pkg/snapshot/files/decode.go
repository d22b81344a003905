// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// record is a decoded object and where it came from.
type record struct {
	object metav1.Object
	place  place
}

// header is a decoded header and the file that it is in.
type header struct {
	snapshot.Header
	file string
}

// decoded has the objects of a part of the input.
type decoded struct {
	records []record
	headers []header
	gaps    []snapshot.Gap
	skipped map[string]int
	// skippedNames has the skipped objects of manifests: "Service ml/web".
	skippedNames []string
	// listed has the kinds of which there was a typed list, even an empty one.
	listed []string
	// gone is why the first of the skipped objects of old versions was.
	gone *InputError
	// documents counts everything that was an object, skipped or not.
	documents int
	// objects counts the objects of each file, skipped or not.
	objects map[string]int
	// purpose says how to judge the objects: except for objects of a cluster, as the API
	// server judges new objects. It is set before decoding.
	purpose purpose
	// decoder is the decoder of the worker. It is set before decoding.
	decoder *kinds.Decoder
}

func (d *decoded) merge(other *decoded) {
	d.records = append(d.records, other.records...)
	d.headers = append(d.headers, other.headers...)
	d.gaps = append(d.gaps, other.gaps...)
	d.skippedNames = append(d.skippedNames, other.skippedNames...)
	d.listed = append(d.listed, other.listed...)
	d.documents += other.documents
	d.gone = cmp.Or(d.gone, other.gone)
	for kind, count := range other.skipped {
		d.skip(kind, count)
	}
	for file, count := range other.objects {
		d.count(file, count)
	}
}

func (d *decoded) count(file string, objects int) {
	if d.objects == nil {
		d.objects = map[string]int{}
	}
	d.objects[file] += objects
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
		return inputError(at, "", &kinds.SyntaxError{Err: err})
	}
	if ownKind == "" {
		ownVersion, ownKind = apiVersion, kind
	}
	if ownKind == "" {
		return inputError(at, "", errors.New("expected a Kubernetes object, found one without apiVersion and kind"))
	}
	if err := kinds.CheckType(ownVersion, ownKind); err != nil {
		return inputError(at, "", err)
	}
	if !strings.HasSuffix(ownKind, "List") && ownKind != snapshot.KindSnapshot {
		return d.object(data, at, ownVersion, ownKind)
	}
	o, err := outlineObject(data, 0)
	if err != nil {
		return inputError(at, ownKind, &kinds.SyntaxError{Err: err})
	}
	if ownKind == snapshot.KindSnapshot && d.purpose == asPreview {
		return inputError(at, ownKind, fmt.Errorf("%w; that is for --snapshot", notPreview(ownVersion, ownKind)))
	}
	if ownKind == snapshot.KindSnapshot {
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
		if err := d.nested(data[item.From:item.To], within, apiVersion, kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoded) header(data []byte, at place, apiVersion string) error {
	if apiVersion != api.APIVersion {
		return inputError(at, snapshot.KindSnapshot, kinds.AtField("apiVersion", fmt.Errorf(
			"expected %s, found %q; was it saved by a newer version of this program?", api.APIVersion, apiVersion)))
	}
	text := withoutItems(data)
	if err := kinds.CheckSize(text); err != nil {
		return inputError(at, snapshot.KindSnapshot, err)
	}
	h, err := kinds.DecodeAs[snapshot.Header](text)
	if err != nil {
		return inputError(at, snapshot.KindSnapshot, err)
	}
	if err := kinds.CheckHeader(h); err != nil {
		return inputError(at, snapshot.KindSnapshot, err)
	}
	for i := range h.Gaps {
		resource, ok := resourceOfGap(h.Gaps[i].Resource)
		if !ok {
			return inputError(at, snapshot.KindSnapshot, kinds.AtField(fmt.Sprintf("gaps[%d].resource", i), fmt.Errorf(
				"expected one of %s, or another resource with its group, found %q", strings.Join(snapshot.Resources(), ", "), h.Gaps[i].Resource)))
		}
		h.Gaps[i].Resource = resource
	}
	d.headers = append(d.headers, header{*h, at.file})
	return nil
}

// resourceOfGap completes what a header calls a resource: the group may be left
// out. It is not ok if no gap can be about that, so that it would go unnoticed.
// What other groups have may be the target of a question.
func resourceOfGap(name string) (resource string, ok bool) {
	for _, held := range snapshot.Resources() {
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

// object decodes one object that is not a List.
func (d *decoded) object(data []byte, at place, apiVersion, kind string) error {
	d.documents++
	d.count(at.file, 1)
	if err := kinds.CheckSize(data); err != nil {
		return inputError(at, describeObject(data, kind), err)
	}
	if group, _, _ := strings.Cut(apiVersion, "/"); d.purpose == asPreview && (kind != "ResourceSlice" || group != resourceapi.GroupName) {
		return inputError(at, describeObject(data, kind), notPreview(apiVersion, kind))
	}
	object, err := d.decoder.Decode(data, apiVersion, kind)
	if errors.Is(err, kinds.ErrDroppedSelector) && d.purpose == asCluster {
		_, name := peekName(data)
		d.gaps = append(d.gaps, snapshot.Gap{
			Resource: snapshot.ResourceTaintRules,
			Reason:   fmt.Sprintf("DeviceTaintRule %s is left out: %v", name, err),
		})
		return nil
	}
	if errors.Is(err, kinds.ErrGone) && d.purpose == asCluster {
		d.gone = cmp.Or(d.gone, inputError(at, describeObject(data, kind), err))
		d.skip(fmt.Sprintf("%s, Kind=%s", apiVersion, kind), 1)
		return nil
	}
	if err != nil {
		return inputError(at, describeObject(data, kind), err)
	}
	if d.purpose != asCluster {
		if err := d.decoder.CheckFields(data, apiVersion, kind); err != nil {
			return inputError(at, describeObject(data, kind), err)
		}
	}
	if outline, ok := object.(*snapshot.Outline); ok && d.purpose != asCluster && outline.Spec.ScaleTargetRef == nil {
		// Nothing in it can be explained before it is applied.
		object = nil
	}
	if object == nil {
		if err := kinds.CheckText(data); err != nil {
			return inputError(at, describeObject(data, kind), err)
		}
		d.skip(fmt.Sprintf("%s, Kind=%s", apiVersion, kind), 1)
		if d.purpose != asCluster {
			d.skippedNames = append(d.skippedNames, strings.Replace(describeObject(data, kind), "/", " ", 1))
		}
		return nil
	}
	err = kinds.CheckStored(object, apiVersion, kind)
	if err == nil && d.purpose != asCluster {
		err = kinds.CheckValues(object, apiVersion)
	}
	if err != nil {
		return inputError(at, describeObject(data, kind), err)
	}
	if object.GetName() == "" {
		if object.GetGenerateName() == "" {
			return inputError(at, kind, kinds.AtField("metadata.name", errors.New("expected a name, found none")))
		}
		object.SetName(object.GetGenerateName() + generatedSuffix)
	}
	kinds.Strip(object)
	d.decoder.Share(object)
	d.records = append(d.records, record{object, at})
	return nil
}

// generatedSuffix stands for the random part of a generated name in the
// manifest of an object that has only metadata.generateName.
const generatedSuffix = "xxxxx"

// purpose is the reason for reading files.
type purpose int

const (
	// asCluster takes files for all that there is to know of a cluster.
	asCluster purpose = iota
	// asManifests reads files as manifests that are about to be applied.
	asManifests
	// asPreview takes them for what a driver would publish.
	asPreview
)

func notPreview(apiVersion, kind string) error {
	return fmt.Errorf("expected a ResourceSlice of %s, found a %s of %s", resourceapi.GroupName, kind, cmp.Or(apiVersion, "no apiVersion"))
}
