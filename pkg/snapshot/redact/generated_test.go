// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"hash/fnv"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// keptPaths returns the fields of which testdata/kept.txt says that their text stays.
func keptPaths(t *testing.T) map[string]bool {
	t.Helper()
	content, err := os.ReadFile("testdata/kept.txt")
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		path, reason, found := strings.Cut(strings.TrimSpace(line), "  ")
		kept[path] = found && !strings.Contains(reason, "pseudonym")
	}
	return kept
}

// secretly makes a secret of every text that is not at one of the paths. Texts that are the
// same stay the same.
func secretly(v reflect.Value, path string, kept map[string]bool) {
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, resource.Quantity, metav1.FieldsV1, runtime.RawExtension:
		return
	}
	switch v.Kind() { //nolint:exhaustive // the others have no strings
	case reflect.String:
		if text := v.String(); !kept[path] && text != "" && text != "true" && text != "false" && text != corev1.DefaultSchedulerName {
			sum := fnv.New32a()
			_, _ = sum.Write([]byte(text))
			v.SetString(fmt.Sprintf("%s-hush%d", text, sum.Sum32()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			secretly(v.Elem(), path, kept)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case !field.IsExported():
			case field.Anonymous || name == "" && field.Name == "ObjectMeta":
				secretly(v.Field(i), path, kept)
			case name == "":
				secretly(v.Field(i), path+"."+field.Name, kept)
			default:
				secretly(v.Field(i), path+"."+name, kept)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			secretly(v.Index(i), path+"[]", kept)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			secretly(value, path+"{}", kept)
			v.SetMapIndex(key, value)
		}
	}
}

// TestRedactGenerated redacts random clusters of which every text is a secret. Nothing of them
// is left but what is documented, and the answer stays the same.
func TestRedactGenerated(t *testing.T) {
	kept, marks, verdicts := keptPaths(t), 0, map[string]int{}
	for seed := range uint64(40) {
		s, _ := new(copies).clone(fleet.Random(seed).Snapshot)
		s.Nodes[0].Name += ".rack7.dc.hushcorp.example"
		v := reflect.ValueOf(s).Elem()
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).Kind() == reflect.Slice && name != "Listed" && name != "Served" {
				for j := range v.Field(i).Len() {
					secretly(v.Field(i).Index(j), name, kept)
				}
			}
		}
		s.Sort()
		marks += strings.Count(saved(t, s), "hush")
		redacted := Snapshot(s)
		if leak := regexp.MustCompile(`.{0,60}hush.{0,30}`).FindString(saved(t, redacted)); leak != "" {
			t.Errorf("seed %d: left: %s", seed, leak)
		}
		for i, pod := range s.Pods {
			if len(pod.Spec.ResourceClaims) == 0 {
				continue
			}
			before, after := verdict(t, s, s.Pods[i]), verdict(t, redacted, redacted.Pods[i])
			verdicts[before]++
			if before != after {
				t.Errorf("seed %d: %s: %s, redacted %s", seed, pod.Name, before, after)
			}
		}
	}
	// Clusters without secrets, or with one answer, would show nothing.
	if marks < 1000 || len(verdicts) < 5 {
		t.Errorf("%d secrets, verdicts %v", marks, verdicts)
	}
}

func verdict(t *testing.T, s *snapshot.Snapshot, pod *corev1.Pod) string {
	t.Helper()
	e, err := explain.Explain(t.Context(), s, explain.Options{Object: api.Ref("Pod", pod.Namespace, pod.Name)})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s, %s, %s", e.Verdict, e.Code, e.Stage)
}
