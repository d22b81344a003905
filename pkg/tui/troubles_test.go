// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestWindowTitle says which cluster it is, and how it is.
func TestWindowTitle(t *testing.T) {
	title := func(s *session) string { return s.model.View().WindowTitle }
	s := browse(t, 80, 24)
	if got, want := title(s), "dra top file examples/cluster: 10 wait, 1 broken"; got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	s.keys("n", `"research`, "enter")
	if got, want := title(s), "dra top file examples/cluster: 4 wait, 1 broken"; got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	source := newMoving(&snapshot.Snapshot{Clock: snapshot.Clock{TakenAt: testTime()}})
	s = newSession(t, Options{Source: source, Name: "https://10.0.0.1", Context: "prod\x1b]2;evil\x07"}, 80, 24)
	if got, want := title(s), `dra top prod\x1b]2;evil\x07`; got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	source.fail(testTime(), errors.New("connection refused"))
	if got := title(s); !strings.HasSuffix(got, ": no answer") {
		t.Errorf("without answers, the title is %q", got)
	}
}

// TestBell rings when the cluster gets worse, and never twice for the same.
func TestBell(t *testing.T) {
	before := example(t)
	now := before.Now()
	source := newMoving(before)
	rings := func(opts Options) func(snap *snapshot.Snapshot, after time.Duration) bool {
		opts.Source, opts.Now = source, func() time.Time { return now }
		s := newSession(t, opts, 80, 24)
		return func(snap *snapshot.Snapshot, after time.Duration) bool {
			t.Helper()
			amended := *snap
			now = now.Add(after)
			amended.TakenAt = now
			source.set(&amended)
			s.rung = 0
			s.changed()
			if s.rung > 1 {
				t.Errorf("it rings %d times at once", s.rung)
			}
			return s.rung > 0
		}
	}
	newPod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "research", UID: "new", CreationTimestamp: metav1.Time{Time: now}},
		Spec:       corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("one-gpu")}}, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}}},
	}
	withPod := before.With(&snapshot.Snapshot{Pods: []*corev1.Pod{newPod}})
	broken := *withPod
	broken.Slices = nil
	for _, slice := range withPod.Slices {
		if slice.Spec.Pool.Name == "gpu-01" {
			slice = slice.DeepCopy()
			slice.Spec.Pool.ResourceSliceCount++
		}
		broken.Slices = append(broken.Slices, slice)
	}
	evicting := broken.With(&snapshot.Snapshot{TaintRules: []*resourceapi.DeviceTaintRule{{
		ObjectMeta: metav1.ObjectMeta{Name: "worn", UID: types.UID("worn")},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: ptr.To("gpu-02")},
			Taint:          resourceapi.DeviceTaint{Key: "worn", Effect: resourceapi.DeviceTaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now}},
		},
	}}})
	ring := rings(Options{Bell: true})
	for _, step := range []struct {
		snap  *snapshot.Snapshot
		after time.Duration
		rings bool
		why   string
	}{
		{before, time.Second, false, "nothing changed"},
		{withPod, 10 * time.Second, false, "the pod has just been created"},
		{withPod, 30 * time.Second, true, "the pod waits"},
		{withPod, time.Second, false, "it still waits"},
		{&broken, time.Second, true, "a pool is broken"},
		{withPod, time.Second, false, "the pool is in order again"},
		{&broken, time.Second, false, "it has just been broken before"},
		{evicting, time.Second, true, "a pod is evicted"},
		{evicting, time.Second, false, "it still is"},
	} {
		if got := ring(step.snap, step.after); got != step.rings {
			t.Errorf("it rings: %t, although %s", got, step.why)
		}
	}
	quiet := rings(Options{})
	if quiet(before, time.Second) || quiet(evicting, time.Minute) {
		t.Error("it rings although nobody asked for it")
	}
}

// isBell reports whether a message makes the terminal ring.
func isBell(msg tea.Msg) bool {
	raw, ok := msg.(tea.RawMsg)
	return ok && raw.Msg == "\a"
}
