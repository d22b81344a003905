// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The functions in this file refuse what the API server refuses in a manifest
// before it looks at the values: a version that it does not have, and, as with
// kubectl's --validate=strict, fields that nobody reads.

// CheckFields fails for a manifest of a version that is not served, or with
// a field that its type does not have.
func (d *Decoder) CheckFields(data []byte, apiVersion, kind string) error {
	expected := ExpectedVersion(apiVersion, kind)
	if expected == "" && apiVersion == "" {
		expected = "a version such as v1"
	}
	if expected != "" {
		found := "none"
		if apiVersion != "" {
			found = strconv.Quote(apiVersion)
		}
		return AtField("apiVersion", fmt.Errorf("expected %s, found %s", expected, found))
	}
	manifest := manifestType(apiVersion, kind)
	if manifest == nil {
		return nil
	}
	_, version, found := strings.Cut(apiVersion, "/")
	if !found {
		version = apiVersion
	}
	for err := range d.schemas.unknown(data, manifest, version, nil) {
		return err
	}
	return nil
}

// Unknown finds the fields of a manifest that its type does not have, in alphabetical
// order, but for those whose paths are known already. There are none of a kind whose fields
// are not known here.
func (s Schemas) Unknown(data []byte, apiVersion, kind string, known func(path string) bool) iter.Seq[*FieldError] {
	manifest := manifestType(apiVersion, kind)
	if manifest == nil {
		return func(func(*FieldError) bool) {}
	}
	return s.unknown(data, manifest, groupOf(apiVersion).Version, known)
}

// ExpectedVersion returns the apiVersion that a manifest should have; empty if its own is
// right, or the kind is not known here.
func ExpectedVersion(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	expected := ""
	switch kind {
	case "Node", "Namespace", "Pod", "ReplicationController", "PodTemplate", "ResourceQuota", "LimitRange":
		expected = "v1"
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		expected = "apps/v1"
	case "Job", "CronJob":
		expected = "batch/v1"
	case "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "DeviceTaintRule":
		expected = resourceapi.SchemeGroupVersion.String()
	}
	switch {
	case expected == "" || expected == apiVersion:
		return ""
	case expected == resourceapi.SchemeGroupVersion.String() && group == resourceapi.GroupName:
		// Older versions are served, too.
		return ""
	case !slices.Contains([]string{"", "apps", "batch", "extensions", resourceapi.GroupName}, group):
		// It is a kind of somebody else.
		return ""
	default:
		return expected
	}
}

// manifestType returns the type of a manifest, or nil if it is one of the
// many whose fields are not known here.
func manifestType(apiVersion, kind string) reflect.Type {
	switch apiVersion + " " + kind {
	case "v1 Node":
		return reflect.TypeFor[corev1.Node]()
	case "v1 Namespace":
		return reflect.TypeFor[corev1.Namespace]()
	case "v1 Pod":
		return reflect.TypeFor[corev1.Pod]()
	case "v1 PodTemplate":
		return reflect.TypeFor[corev1.PodTemplate]()
	case "v1 ReplicationController":
		return reflect.TypeFor[corev1.ReplicationController]()
	case "apps/v1 Deployment":
		return reflect.TypeFor[appsv1.Deployment]()
	case "apps/v1 StatefulSet":
		return reflect.TypeFor[appsv1.StatefulSet]()
	case "apps/v1 DaemonSet":
		return reflect.TypeFor[appsv1.DaemonSet]()
	case "apps/v1 ReplicaSet":
		return reflect.TypeFor[appsv1.ReplicaSet]()
	case "batch/v1 Job":
		return reflect.TypeFor[batchv1.Job]()
	case "batch/v1 CronJob":
		return reflect.TypeFor[batchv1.CronJob]()
	case "scheduling.k8s.io/v1beta1 PodGroup":
		return reflect.TypeFor[schedulingapi.PodGroup]()
	case "scheduling.k8s.io/v1alpha3 CompositePodGroup":
		return reflect.TypeFor[schedulingv1alpha3.CompositePodGroup]()
	}
	version, found := strings.CutPrefix(apiVersion, resourceapi.GroupName+"/")
	if !found {
		return nil
	}
	return resourceType(version, kind)
}

func resourceType(version, kind string) reflect.Type {
	switch version + " " + kind {
	case "v1 ResourceClaim":
		return reflect.TypeFor[resourceapi.ResourceClaim]()
	case "v1 ResourceClaimTemplate":
		return reflect.TypeFor[resourceapi.ResourceClaimTemplate]()
	case "v1 ResourceSlice":
		return reflect.TypeFor[resourceapi.ResourceSlice]()
	case "v1 DeviceClass":
		return reflect.TypeFor[resourceapi.DeviceClass]()
	case "v1 DeviceTaintRule":
		return reflect.TypeFor[resourceapi.DeviceTaintRule]()
	case "v1beta2 ResourceClaim":
		return reflect.TypeFor[resourcev1beta2.ResourceClaim]()
	case "v1beta2 ResourceClaimTemplate":
		return reflect.TypeFor[resourcev1beta2.ResourceClaimTemplate]()
	case "v1beta2 ResourceSlice":
		return reflect.TypeFor[resourcev1beta2.ResourceSlice]()
	case "v1beta2 DeviceClass":
		return reflect.TypeFor[resourcev1beta2.DeviceClass]()
	case "v1beta2 DeviceTaintRule":
		return reflect.TypeFor[resourcev1beta2.DeviceTaintRule]()
	case "v1beta1 ResourceClaim":
		return reflect.TypeFor[resourcev1beta1.ResourceClaim]()
	case "v1beta1 ResourceClaimTemplate":
		return reflect.TypeFor[resourcev1beta1.ResourceClaimTemplate]()
	case "v1beta1 ResourceSlice":
		return reflect.TypeFor[resourcev1beta1.ResourceSlice]()
	case "v1beta1 DeviceClass":
		return reflect.TypeFor[resourcev1beta1.DeviceClass]()
	case "v1alpha3 DeviceTaintRule":
		return reflect.TypeFor[resourcev1alpha3.DeviceTaintRule]()
	default:
		return nil
	}
}

// unknown finds the fields, in alphabetical order, that a type does not have.
// The data can be decoded as that type.
func (s Schemas) unknown(data []byte, kind reflect.Type, version string, known func(path string) bool) iter.Seq[*FieldError] {
	return func(yield func(*FieldError) bool) {
		if _, known := s.knows(data, SkipSpace(data, 0), kind); known {
			return
		}
		w := fieldWalk{Schemas: s, version: version, known: known, yield: yield}
		w.value(data, kind, "")
	}
}

// knows reports whether the value at from, and all in it, has no other fields than its type,
// and where it ends. Where it is not sure, it does not.
func (s Schemas) knows(data []byte, from int, kind reflect.Type) (end int, known bool) {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	fields := s.of(kind)
	if from < len(data) && data[from] == '[' && kind.Kind() == reflect.Slice {
		items, end, err := Items(data, from)
		return end, err == nil && !slices.ContainsFunc(items, func(item Span) bool {
			_, known := s.knows(data[:item.To], item.From, kind.Elem())
			return !known
		})
	}
	if from == len(data) || data[from] != '{' || fields == nil && kind.Kind() != reflect.Map {
		end, err := SkipValue(data, from)
		return end, err == nil
	}
	known = true
	end, err := EachField(data, from, func(key []byte, at int) (int, bool, error) {
		below, there := fields[string(key)]
		if fields == nil {
			below, there = kind.Elem(), true
		}
		if !there {
			known = false
			return at, false, nil
		}
		at, known = s.knows(data, at, below)
		return at, known, nil
	})
	return end, known && err == nil
}

// fieldWalk goes through an object beside its type.
type fieldWalk struct {
	Schemas
	version string
	known   func(path string) bool
	yield   func(*FieldError) bool
	// parents are the structs around the value.
	parents []parent
}

// value walks a value, and reports whether to go on.
func (w *fieldWalk) value(data []byte, kind reflect.Type, path string) bool {
	if _, custom := reflect.New(kind).Interface().(json.Unmarshaler); custom {
		return true
	}
	switch kind.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer:
		return w.value(data, kind.Elem(), path)
	case reflect.Struct:
		w.parents = append(w.parents, parent{path, kind})
		more := w.fields(data, path)
		w.parents = w.parents[:len(w.parents)-1]
		return more
	case reflect.Slice:
		if !bytes.HasPrefix(data, []byte("[")) {
			return true
		}
		items, _, _ := Items(data, 0)
		for i, item := range items {
			if !w.value(data[item.From:item.To], kind.Elem(), path+"["+strconv.Itoa(i)+"]") {
				return false
			}
		}
	case reflect.Map:
		for _, entry := range fieldsIn(data) {
			if !w.value(entry.value, kind.Elem(), path+"["+strconv.Quote(entry.name)+"]") {
				return false
			}
		}
	}
	return true
}

// fields walks the fields of the innermost parent, and reports whether to go on.
func (w *fieldWalk) fields(data []byte, path string) bool {
	types := w.of(w.parents[len(w.parents)-1].kind)
	for _, field := range fieldsIn(data) {
		fieldType, known := types[field.name]
		if known {
			if _, all := w.knows(field.value, 0, fieldType); all {
				continue
			}
		}
		at := strings.TrimPrefix(path+"."+field.name, ".")
		switch {
		case known:
			if !w.value(field.value, fieldType, at) {
				return false
			}
		case w.known == nil || !w.known(at):
			unknown := unknownField{w.Schemas, field.name, field.value, w.parents, w.version}
			if !w.yield(AtField(at, errors.New("unknown field"+unknown.place()))) {
				return false
			}
		}
	}
	return true
}

// textField is a field of an object as it is written.
type textField struct {
	name  string
	value []byte
}

// fieldsIn lists the fields of an object in alphabetical order; there are none in anything
// else.
func fieldsIn(data []byte) (fields []textField) {
	_, err := EachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := SkipValue(data, at)
		fields = append(fields, textField{unescaped(key), data[at:end]})
		return end, true, err
	})
	if err != nil {
		return nil
	}
	slices.SortFunc(fields, func(a, b textField) int { return strings.Compare(a.name, b.name) })
	return fields
}

// groupOf returns the group and version of an apiVersion that is known to be
// well-formed.
func groupOf(apiVersion string) schema.GroupVersion {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersion{}
	}
	return gv
}
