// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestAvailableOn(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	on := func(c tc.ClaimWrapper, selector *corev1.NodeSelector) tc.ClaimWrapper {
		out := tc.ClaimWrapper{ResourceClaim: c.DeepCopy()}
		out.Status.Allocation.NodeSelector = selector
		return out
	}
	binding := func(age time.Duration, conditions ...string) tc.ClaimWrapper {
		c := tc.Claim("c").Holding("a.example.com/p/d", func(result *resourceapi.DeviceRequestAllocationResult) {
			result.BindingConditions = []string{"ready"}
			result.BindingFailureConditions = []string{"failed"}
		})
		c.Status.Allocation.AllocationTimestamp = &metav1.Time{Time: now.Add(-age)}
		status := resourceapi.AllocatedDeviceStatus{Driver: tc.DriverA, Pool: "p", Device: "d"}
		for _, condition := range conditions {
			status.Conditions = append(status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Why", Message: "what happened"})
		}
		if len(conditions) > 0 {
			c.Status.Devices = []resourceapi.AllocatedDeviceStatus{status}
		}
		return c
	}
	skipping := tc.Claim("c").Holding("a.example.com/p/d", func(result *resourceapi.DeviceRequestAllocationResult) {
		result.SkipNodeOperations = []resourceapi.SkipNodeOperation{"*"}
	})
	allocated := tc.Claim("c").Holding("a.example.com/p/d")
	capable := tc.Node(tc.Node1, "zone=a")
	capable.Status.DeclaredFeatures = []string{GateOptionalNodeOps}

	tests := map[string]struct {
		gates  tc.Gates
		claim  tc.ClaimWrapper
		node   *corev1.Node
		reason string
	}{
		"not allocated":          {claim: tc.Claim("c")},
		"everywhere":             {claim: allocated},
		"this node":              {claim: on(allocated, tc.NodeSelector("zone", "a"))},
		"another node":           {claim: on(allocated, tc.NodeSelector("zone", "b")), reason: "its devices are on other nodes"},
		"operations not skipped": {claim: skipping, reason: "its devices need DRAOptionalNodeOperations, which the node does not declare"},
		"operations skipped":     {claim: skipping, node: capable},
		"bound":                  {gates: tc.IncubatingGates(), claim: binding(time.Hour, "ready")},
		"binding":                {gates: tc.IncubatingGates(), claim: binding(9 * time.Minute)},
		"binding timed out":      {gates: tc.IncubatingGates(), claim: binding(11 * time.Minute), reason: "its binding conditions were not met within 10m0s"},
		"binding failed":         {gates: tc.IncubatingGates(), claim: binding(time.Minute, "failed"), reason: "binding of device d failed: failed, reason Why: what happened"},
		"binding conditions off": {claim: binding(time.Hour, "failed")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Snapshot(tt.gates)
			snap.TakenAt = now
			n := tt.node
			if n == nil {
				n = tc.Node(tc.Node1, "zone=a")
			}
			available, reason := newCluster(t, snap).Claims.AvailableOn(tt.claim.ResourceClaim, n)
			if reason != tt.reason || available != (tt.reason == "") {
				t.Errorf("got %t, %q; want %q", available, reason, tt.reason)
			}
		})
	}
}

func TestReserved(t *testing.T) {
	c := tc.Claim("c").ReservedFor("p", "uid-p")
	a := newCluster(t, tc.Snapshot())
	if !a.Claims.Reserved(c.ResourceClaim, tc.Pod("p")) {
		t.Error("not reserved for its pod")
	}
	if a.Claims.Reserved(c.ResourceClaim, tc.Pod("q")) || a.Claims.Reserved(c.ResourceClaim, tc.Pod("p", tc.OnlyTemplate)) {
		t.Error("reserved for another pod")
	}
}

// TestReservedForGroup believes what a claim says where nothing is known about
// the feature gate.
func TestReservedForGroup(t *testing.T) {
	c := tc.Claim("c")
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g", UID: tc.UID("g")}}
	off := func(source snapshot.GateSource) *snapshot.Snapshot {
		s := tc.Snapshot()
		s.Gates[GateWorkloadClaims] = snapshot.Gate{Source: source}
		return s
	}
	tests := map[string]struct {
		snap              *snapshot.Snapshot
		reserved, assumed bool
	}{
		"on":             {snap: tc.Snapshot(tc.Gates{GateWorkloadClaims}), reserved: true},
		"off":            {snap: off(snapshot.GateFromMetrics)},
		"off by default": {snap: off(snapshot.GateFromDefault), reserved: true, assumed: true},
	}
	for name, test := range tests {
		a := newCluster(t, test.snap)
		if got := a.Claims.Reserved(c.ResourceClaim, tc.Pod("p", tc.InGroup("g"))); got != test.reserved {
			t.Errorf("%s: reserved %t", name, got)
		}
		if got := a.Claims.ReservedByAssumption(c.ResourceClaim, tc.Pod("p", tc.InGroup("g"))); got != test.assumed {
			t.Errorf("%s: assumed %t", name, got)
		}
		if a.Claims.Reserved(c.ResourceClaim, tc.Pod("q", tc.InGroup("h"))) {
			t.Errorf("%s: reserved for another group", name)
		}
	}
}

func TestConsumers(t *testing.T) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml"}}
	if consumers := Consumers(claim); consumers != nil {
		t.Errorf("a claim that is not reserved has the consumers %v", consumers)
	}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{
		{Resource: "pods", Name: "train-0"},
		{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang"},
		{APIGroup: "example.com", Resource: "gizmos", Name: "one"},
	}
	if diff := gocmp.Diff([]api.ObjectRef{
		api.Ref("Pod", "ml", "train-0"),
		api.Ref("PodGroup", "ml", "gang"),
		api.Ref("gizmo", "ml", "one").In("example.com"),
	}, Consumers(claim)); diff != "" {
		t.Error(diff)
	}
}
