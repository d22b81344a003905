// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// TestAllocatorPanics names a panic of the allocator as a bug of it, and leaves it at that.
// The allocator of 1.37 panics where a class has a selector of a type that it does not know.
func TestAllocatorPanics(t *testing.T) {
	snap := testsnapshot.Load(t, `
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {pods: "10", cpu: "4", memory: 4Gi}, conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: x, namespace: default}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}
`)
	snap.Classes[0].Spec.Selectors = []resourceapi.DeviceSelector{{}}
	e, err := explain.Explain(t.Context(), snap, explain.Options{Object: api.Ref("ResourceClaim", "default", "x")})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.Error || e.Code != api.AllocatorPanic || !strings.Contains(e.Summary, "bug of the scheduler's allocator, which panics: runtime error: invalid memory address") {
		t.Errorf("got %s, %s: %s", e.Verdict, e.Code, e.Summary)
	}
	if strings.Contains(e.Summary, "goroutine") || strings.Contains(e.Summary, "\n") || len(e.Remedies) > 0 || e.Conflict != nil || e.Outlook != nil || len(e.Claims[0].Requests) > 0 {
		t.Errorf("it is explained further: %+v", e)
	}
}
