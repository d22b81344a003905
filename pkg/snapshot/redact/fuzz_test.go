// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// FuzzRedact puts arbitrary text where texts are. A node's name is gone from it
// afterwards, in whatever letters, and an expression stays one.
func FuzzSnapshot(f *testing.F) {
	for _, seed := range []string{
		"node acme-node-7 failed", "ACME-NODE-7:10.77.1.1/24", "device.x == \"acme-node-7\" // acme-node-7", "'acme-' + 'node-7'", "a=acme-node-7,b", "acme-node-7.acme.example",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &snapshot.Snapshot{
			Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "acme-node-7"}}},
			Pods: []*corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a"}, Status: corev1.PodStatus{Message: text, Conditions: []corev1.PodCondition{{Message: text}}},
			}},
			Classes: []*resourceapi.DeviceClass{{
				ObjectMeta: metav1.ObjectMeta{Name: "c"},
				Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: text}}}},
			}},
		}
		redacted := Snapshot(s)
		name := regexp.MustCompile(`(?i)acme-node-7`)
		if message := redacted.Pods[0].Status.Message; name.MatchString(message) {
			t.Errorf("%q is left as %q", text, message)
		}
		before, after := parseExpression(text), parseExpression(redacted.Classes[0].Spec.Selectors[0].CEL.Expression)
		if before != nil && compiles(text) && after == nil || before == nil && after != nil {
			t.Errorf("%q became %q", text, redacted.Classes[0].Spec.Selectors[0].CEL.Expression)
		}
	})
}

// FuzzRedactLoaded redacts whatever can be loaded. The result can be saved, and
// loaded again.
func FuzzRedactLoaded(f *testing.F) {
	f.Add([]byte(testsnapshot.Everything()))
	f.Add([]byte("{apiVersion: v1, kind: Pod, metadata: {name: a}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1 << 20
		if len(data) > most {
			t.Skip("larger files take too long for many")
		}
		s, err := files.Load(t.Context(), []string{"-"}, files.Options{Stdin: bytes.NewReader(data)})
		if err != nil {
			t.Skip("not a snapshot")
		}
		redacted := Snapshot(s)
		requireEqual(t, redacted, testsnapshot.Load(t, saved(t, redacted)))
	})
}
