// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzLoad feeds arbitrary bytes. Whatever loads must survive being redacted,
// and being saved and loaded in both formats; whatever does not must say where.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		everything, claimYAML, classJSON, classJSON + classJSON, "---\n" + claimYAML + "---\n" + classJSON,
		`{"apiVersion":"v1","kind":"List","items":[` + classJSON + `]}`,
		"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\nkind: List\n",
		"a: &a [*a]", "{a: b}", "%YAML 1.1\n---\n", "\x1f\x8b", "\xff\xfe{\x00}\x00", "[]", `{"items":[`, "- |\n a",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		small := limits{bytes: 1 << 20, unpacked: 1 << 20, memory: 256 << 20, keep: 1 << 16, entries: 10}
		s, err := load(t.Context(), []string{"-"}, Options{Stdin: bytes.NewReader(data)}, asCluster, small)
		if err != nil {
			var input *InputError
			if !errors.As(err, &input) {
				t.Fatalf("not an InputError: %v", err)
			}
			return
		}
		for _, snapshot := range []*Snapshot{s, Redact(s)} {
			for _, format := range []Format{FormatJSON, FormatYAML} {
				var saved bytes.Buffer
				if err := snapshot.Save(&saved, format); err != nil {
					t.Fatalf("save: %v", err)
				}
				loaded, err := Load(t.Context(), []string{"-"}, Options{Stdin: &saved})
				if err != nil {
					t.Fatalf("load what was saved as %s: %v", format, err)
				}
				requireEqual(t, snapshot, loaded)
			}
		}
	})
}

// FuzzRedact puts arbitrary text where texts are. A node's name is gone from it
// afterwards, in whatever letters, and an expression stays one.
func FuzzRedact(f *testing.F) {
	for _, seed := range []string{
		"node acme-node-7 failed", "ACME-NODE-7:10.77.1.1/24", "device.x == \"acme-node-7\" // acme-node-7", "'acme-' + 'node-7'", "a=acme-node-7,b", "acme-node-7.acme.example",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &Snapshot{
			Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "acme-node-7"}}},
			Pods: []*corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a"}, Status: corev1.PodStatus{Message: text, Conditions: []corev1.PodCondition{{Message: text}}},
			}},
			Classes: []*resourceapi.DeviceClass{{
				ObjectMeta: metav1.ObjectMeta{Name: "c"},
				Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: text}}}},
			}},
		}
		redacted := Redact(s)
		name := regexp.MustCompile(`(?i)acme-node-7`)
		if message := redacted.Pods[0].Status.Message; name.MatchString(message) {
			t.Errorf("%q is left as %q", text, message)
		}
		before, after := parseExpression(text), parseExpression(redacted.Classes[0].Spec.Selectors[0].CEL.Expression)
		if (before == nil) != (after == nil) {
			t.Errorf("%q became %q", text, redacted.Classes[0].Spec.Selectors[0].CEL.Expression)
		}
	})
}
