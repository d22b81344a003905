// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"runtime"
	"slices"
	"testing"
	"weak"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestAmendedForgets follows a cluster in which everything but what drivers publish is replaced
// again and again, as a dashboard does that is left open. Nobody asks about it: what there was
// at the start must not stay in memory.
func TestAmendedForgets(t *testing.T) {
	snap := fleet.Mixed(20)
	replaced := func(step int) *snapshot.Snapshot {
		next := *snap
		next.Pods, next.Claims, next.Nodes = slices.Clone(snap.Pods), slices.Clone(snap.Claims), slices.Clone(snap.Nodes)
		for i := step % 2; i < len(next.Pods); i += 16 {
			next.Pods[i] = next.Pods[i].DeepCopy()
		}
		for i := step % 2; i < len(next.Claims); i += 16 {
			claim := next.Claims[i].DeepCopy()
			claim.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
			// Some of those that have devices stay: see layers.
			claim.Status = resourceapi.ResourceClaimStatus{}
			next.Claims[i] = claim
		}
		for i := range next.Nodes {
			next.Nodes[i] = next.Nodes[i].DeepCopy()
		}
		return &next
	}
	snap = replaced(0)
	pod, claim, node := weak.Make(snap.Pods[0]), weak.Make(snap.Claims[0]), weak.Make(snap.Nodes[0])
	whole := weak.Make(snap)
	c := New(snap)
	for step := range 100 {
		snap = replaced(step)
		c = c.Amended(snap)
	}
	runtime.GC()
	for kind, kept := range map[string]bool{"snapshot": whole.Value() != nil, "pod": pod.Value() != nil, "claim": claim.Value() != nil, "node": node.Value() != nil} {
		if kept {
			t.Errorf("a %s of the start is still in memory", kind)
		}
	}
	runtime.KeepAlive(c)
}
