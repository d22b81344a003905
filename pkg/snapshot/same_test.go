// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestSame(t *testing.T) {
	made := func() *snapshot.Snapshot {
		return &snapshot.Snapshot{
			TakenAt: time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC),
			Nodes: []*corev1.Node{{
				ObjectMeta: metav1.ObjectMeta{Name: "node", ResourceVersion: "1"},
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
			}},
			Claims: []*resourceapi.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Name: "claim", ResourceVersion: "2"}}},
		}
	}
	for name, test := range map[string]struct {
		change func(s *snapshot.Snapshot)
		same   bool
	}{
		"nothing":   {func(*snapshot.Snapshot) {}, true},
		"time":      {func(s *snapshot.Snapshot) { s.TakenAt = s.TakenAt.Add(time.Hour) }, true},
		"heartbeat": {func(s *snapshot.Snapshot) { s.Nodes[0].Status.Conditions[0].LastHeartbeatTime = metav1.Now() }, true},
		"version": {func(s *snapshot.Snapshot) {
			s.Nodes[0].ResourceVersion, s.Claims[0].ResourceVersion = "7", "8"
		}, true},
		"readiness":  {func(s *snapshot.Snapshot) { s.Nodes[0].Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"cordoned":   {func(s *snapshot.Snapshot) { s.Nodes[0].Spec.Unschedulable = true }, false},
		"label":      {func(s *snapshot.Snapshot) { s.Claims[0].Labels = map[string]string{"a": "b"} }, false},
		"allocation": {func(s *snapshot.Snapshot) { s.Claims[0].Status.Allocation = &resourceapi.AllocationResult{} }, false},
		"one more":   {func(s *snapshot.Snapshot) { s.Pods = []*corev1.Pod{{}} }, false},
		"a gap":      {func(s *snapshot.Snapshot) { s.Gaps = []snapshot.Gap{{Resource: snapshot.ResourcePods}} }, false},
		"a gate":     {func(s *snapshot.Snapshot) { s.Gates = map[string]snapshot.Gate{"DRA": {Enabled: true}} }, false},
	} {
		before, after := made(), made()
		test.change(after)
		version := after.Claims[0].ResourceVersion
		if got := snapshot.Same(before, after); got != test.same {
			t.Errorf("%s: got %t", name, got)
		}
		if after.Claims[0].ResourceVersion != version {
			t.Errorf("%s: the snapshot is changed", name)
		}
	}
}
