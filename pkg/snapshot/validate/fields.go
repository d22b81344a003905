// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
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

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/objects"
)

// The functions in this file refuse what the API server refuses in a manifest
// before it looks at the values: a version that it does not have, and, as with
// kubectl's --validate=strict, fields that nobody reads.

// Fields fails for a manifest of a version that is not served, or with
// a field that its type does not have.
func Fields(data []byte, apiVersion, kind string) error {
	if expected := expectedVersion(apiVersion, kind); expected != "" {
		found := "none"
		if apiVersion != "" {
			found = strconv.Quote(apiVersion)
		}
		return objects.AtField("apiVersion", fmt.Errorf("expected %s, found %s", expected, found))
	}
	manifest := manifestType(apiVersion, kind)
	if manifest == nil {
		return nil
	}
	_, version, found := strings.Cut(apiVersion, "/")
	if !found {
		version = apiVersion
	}
	for err := range unknownFields(data, manifest, "", version) {
		return err
	}
	return nil
}

// UnknownFields finds the fields of a manifest that its type does not have, in
// alphabetical order. There are none of a kind whose fields are not known here.
func UnknownFields(data []byte, apiVersion, kind string) iter.Seq[*objects.FieldError] {
	manifest := manifestType(apiVersion, kind)
	if manifest == nil {
		return func(func(*objects.FieldError) bool) {}
	}
	return unknownFields(data, manifest, "", groupOf(apiVersion).Version)
}

// expectedVersion returns the apiVersion that a manifest should have, or
// nothing if there is nothing to say against the one that it has.
func expectedVersion(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	expected := ""
	switch {
	case group == "" && slices.Contains([]string{"Node", "Namespace", "Pod", "ReplicationController", "PodTemplate"}, kind):
		expected = "v1"
	case objects.KnownWorkload(group, kind) != objects.NotWorkload:
		expected = group + "/v1"
	case apiVersion != "":
	case objects.KnownWorkload("apps", kind) != objects.NotWorkload:
		expected = "apps/v1"
	case objects.KnownWorkload("batch", kind) != objects.NotWorkload:
		expected = "batch/v1"
	case slices.Contains([]string{"ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "DeviceTaintRule"}, kind):
		expected = resourceapi.SchemeGroupVersion.String()
	default:
		expected = "a version such as v1"
	}
	if expected == apiVersion {
		return ""
	}
	return expected
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

// unknownFields finds the fields, in alphabetical order, that a type does not have.
// The data can be decoded as that type.
func unknownFields(data []byte, kind reflect.Type, path, version string) iter.Seq[*objects.FieldError] {
	return func(yield func(*objects.FieldError) bool) { eachUnknown(data, kind, path, version, yield) }
}

// eachUnknown returns false once nobody wants to know more.
func eachUnknown(data []byte, kind reflect.Type, path, version string, yield func(*objects.FieldError) bool) bool {
	if _, custom := reflect.New(kind).Interface().(json.Unmarshaler); custom {
		return true
	}
	switch kind.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer:
		return eachUnknown(data, kind.Elem(), path, version, yield)
	case reflect.Struct:
		return eachUnknownInStruct(data, kind, path, version, yield)
	case reflect.Slice:
		var elements []json.RawMessage
		if kind.Elem().Kind() == reflect.Uint8 || json.Unmarshal(data, &elements) != nil {
			return true
		}
		for i, element := range elements {
			if !eachUnknown(element, kind.Elem(), path+"["+strconv.Itoa(i)+"]", version, yield) {
				return false
			}
		}
	case reflect.Map:
		var entries map[string]json.RawMessage
		if json.Unmarshal(data, &entries) != nil {
			return true
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if !eachUnknown(entries[key], kind.Elem(), path+"["+strconv.Quote(key)+"]", version, yield) {
				return false
			}
		}
	}
	return true
}

func eachUnknownInStruct(data []byte, kind reflect.Type, path, version string, yield func(*objects.FieldError) bool) bool {
	var values map[string]json.RawMessage
	if json.Unmarshal(data, &values) != nil {
		return true
	}
	types := map[string]reflect.Type{}
	objects.FieldTypes(kind, types)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fieldType, known := types[name]
		if !known {
			message := "unknown field" + placeOfField(name, values[name], types, path, version)
			if !yield(objects.AtField(strings.TrimPrefix(path+"."+name, "."), errors.New(message))) {
				return false
			}
			continue
		}
		if !eachUnknown(values[name], fieldType, path+"."+name, version, yield) {
			return false
		}
	}
	return true
}

// placeOfField guesses where a field belongs that is in the wrong place or
// misspelled. The types are those of the fields that could be there.
func placeOfField(name string, value []byte, types map[string]reflect.Type, path, version string) string {
	names := slices.Sorted(maps.Keys(types))
	for _, parent := range names {
		child := types[parent]
		if child.Kind() == reflect.Pointer {
			child = child.Elem()
		}
		if child.Kind() != reflect.Struct {
			continue
		}
		inner := map[string]reflect.Type{}
		objects.FieldTypes(child, inner)
		if _, ok := inner[name]; ok {
			return fmt.Sprintf("; in %s it belongs under %s", version, parent)
		}
	}
	nearest, best := "", 0.6
	for _, candidate := range names {
		if similarity := levenshtein.Similarity(strings.ToLower(name), strings.ToLower(candidate), nil); similarity > best {
			nearest, best = candidate, similarity
		}
	}
	if nearest != "" {
		return fmt.Sprintf("; did you mean %s?", nearest)
	}
	var content map[string]json.RawMessage
	if json.Unmarshal(value, &content) == nil && len(content) > 0 {
		for key := range content {
			if _, ok := types[key]; !ok {
				return ""
			}
		}
		return fmt.Sprintf("; in %s what is in it belongs directly under %s", version, strings.TrimPrefix(path, "."))
	}
	return ""
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
