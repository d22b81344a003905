// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// marker fills every string that a type has with a word of its own.
type marker struct{ count int }

func (m *marker) word() string {
	m.count++
	return fmt.Sprintf("zzmark%dz", m.count)
}

func (m *marker) fill(v reflect.Value, depth int) {
	if depth > 25 {
		return
	}
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, resource.Quantity, metav1.FieldsV1:
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"text":%q}`, m.word(), m.word())}))
		return
	}
	switch v.Kind() { //nolint:exhaustive // the others have no strings
	case reflect.String:
		v.SetString(m.word())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		m.fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			switch {
			case !v.Field(i).CanSet():
			case v.Type().Field(i).Name == "Expression":
				// One that does not compile is hidden as a whole. This one has a comment.
				v.Field(i).SetString(fmt.Sprintf("device.attributes[%q].%s == %q // %s\n", m.word(), m.word(), m.word(), m.word()))
			default:
				m.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		m.fill(v.Index(0), depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		m.fill(key, depth+1)
		m.fill(value, depth+1)
		v.SetMapIndex(key, value)
	}
}

// left collects the paths of the strings that still have a mark.
func left(v reflect.Value, path string, found map[string]bool) {
	mark := regexp.MustCompile(`zzmark\d+z`)
	switch v.Kind() { //nolint:exhaustive // the others have no strings
	case reflect.String:
		if mark.MatchString(v.String()) {
			found[path] = true
		}
	case reflect.Pointer:
		if !v.IsNil() {
			left(v.Elem(), path, found)
		}
	case reflect.Struct:
		if raw, ok := v.Interface().(runtime.RawExtension); ok {
			for _, word := range mark.FindAllString(string(raw.Raw), -1) {
				if bytes.Contains(raw.Raw, []byte(`"kind":"`+word)) {
					found[path+".kind"] = true
				} else {
					found[path] = true
				}
			}
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case !field.IsExported():
			case field.Anonymous || name == "" && field.Name == "ObjectMeta":
				left(v.Field(i), path, found)
			default:
				if name == "" {
					name = field.Name
				}
				left(v.Field(i), path+"."+name, found)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			left(v.Index(i), path+"[]", found)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if mark.MatchString(key.String()) {
				found[path+"{key}"] = true
			}
			left(v.MapIndex(key), path+"{}", found)
		}
	}
}

// filled returns a snapshot with one object of each kind, in which every string is set.
func filled() *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Nodes: []*corev1.Node{{}}, Namespaces: []*corev1.Namespace{{}}, Pods: []*corev1.Pod{{}}, Events: []*corev1.Event{{}},
		Slices: []*resourceapi.ResourceSlice{{}}, Classes: []*resourceapi.DeviceClass{{}}, Claims: []*resourceapi.ResourceClaim{{}},
		Templates: []*resourceapi.ResourceClaimTemplate{{}}, TaintRules: []*resourceapi.DeviceTaintRule{{}},
		PoolStatuses: []*resourcev1alpha3.ResourcePoolStatusRequest{{}}, PodGroups: []*schedulingapi.PodGroup{{}}, CompositePodGroups: []*schedulingv1alpha3.CompositePodGroup{{}},
		Workloads: []*snapshot.Workload{{}}, Queued: []*snapshot.QueuedWorkload{{}}, Outlines: []*snapshot.Outline{{}}, Quotas: []*corev1.ResourceQuota{{}}, LimitRanges: []*corev1.LimitRange{{}},
		VolumeClaims: []*corev1.PersistentVolumeClaim{{}}, Volumes: []*corev1.PersistentVolume{{}}, StorageClasses: []*storageapi.StorageClass{{}}, Budgets: []*policyapi.PodDisruptionBudget{{}}, ClusterPolicies: []*snapshot.ClusterPolicy{{}}, PluginConfigs: []*corev1.ConfigMap{{}},
		Gaps: []snapshot.Gap{{}},
	}
	m := &marker{}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Name != "Gates" && v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() > 0 {
			element := v.Field(i).Index(0)
			if element.Kind() == reflect.Pointer {
				element = element.Elem()
			}
			m.fill(element, 0)
		}
	}
	return s
}

// TestRedactEveryField compares a redacted snapshot in which every string is set with a
// list in which each entry has its reason.
func TestRedactEveryField(t *testing.T) {
	redacted := Snapshot(filled())
	found := map[string]bool{}
	v := reflect.ValueOf(redacted).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Slice && v.Type().Field(i).Name != "Listed" {
			for j := range v.Field(i).Len() {
				element := v.Field(i).Index(j)
				left(element, v.Type().Field(i).Name, found)
			}
		}
	}
	content, err := os.ReadFile("testdata/kept.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		path, reason, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if path == "" || strings.HasPrefix(path, "#") {
			continue
		}
		if strings.TrimSpace(reason) == "" {
			t.Errorf("%s has no reason", path)
		}
		listed[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if !listed[path] {
			t.Errorf("left: %s; say in pkg/snapshot/kinds what becomes of it, or in testdata/kept.txt why it stays", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(listed)) {
		if !found[path] {
			t.Errorf("listed, but not left: %s", path)
		}
	}
}
