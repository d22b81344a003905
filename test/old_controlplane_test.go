// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestWhyAgreesWithOldScheduler runs the scenarios that need no feature gate
// in the oldest release that the control plane can emulate. Its gates select
// another implementation of the allocator.
func TestWhyAgreesWithOldScheduler(t *testing.T) {
	scenarios := loadScenarios(t)
	c := startCluster(t, controlplane.Options{EmulatedVersion: "1.35"})
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios {
			slow := slices.ContainsFunc(s.Steps, func(step step) bool { return step.Slow })
			if len(s.Gates) > 0 || slow {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, s)
			})
		}
	})
}

// TestWhyWithGatesOff creates the scenarios that need feature gates, and then runs
// Kubernetes on the stored objects without the gates, like after a downgrade. Only the
// scheduler knows the outcome.
func TestWhyWithGatesOff(t *testing.T) {
	ctx := t.Context()
	options := everything()
	c := startCluster(t, options)
	var scenarios []*scenario
	for _, s := range loadScenarios(t) {
		if len(s.Gates) == 0 || slices.Contains(s.Gates, "GenericWorkload") || slices.Contains(s.Gates, "DRAExtendedResource") {
			continue
		}
		scenarios = append(scenarios, s)
		for _, object := range s.objects {
			if err := c.create(ctx, s.name, object); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range s.Steps {
			if err := c.create(ctx, s.name, s.pods[step.Pod]); err != nil {
				t.Fatal(err)
			}
			if err := c.waitForClaims(ctx, s.name, step.Pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	off := map[string]bool{}
	for gate := range options.FeatureGates {
		off[gate] = false
	}
	options.FeatureGates = off
	if err := c.plane.Restart(ctx, options); err != nil {
		t.Fatal(err)
	}

	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				defer c.deletePods(t, s.name)
				for _, step := range s.Steps {
					t.Run(step.Pod, func(t *testing.T) { c.runUnforeseen(t, s.name, step.Pod) })
				}
			})
		}
	})
}

// runUnforeseen asks about a pod that exists, and lets the scheduler decide.
func (c *cluster) runUnforeseen(t *testing.T, namespace, pod string) {
	ctx := t.Context()
	before, err := why(t, c.kubeconfig, namespace, pod)
	if err != nil {
		t.Fatal(err)
	}
	before.checkForm(t)
	if slices.Contains([]string{"counters", "network-per-device"}, namespace) && !slices.Contains(before.codes(), api.FeatureDisabled) {
		t.Errorf("the devices need a feature that is off, which is not among the reasons: %v", before.codes())
	}
	if err := c.release(ctx, namespace, pod); err != nil {
		t.Fatal(err)
	}
	agreed := func(d decision) bool {
		return d.reason != "" && d.reason != allocated && agree(before.Verdict, d.reason, d.message)
	}
	got := c.decision(ctx, namespace, pod, agreed)
	if !agreed(got) {
		t.Fatalf("verdict %s (%s), the scheduler says %q: %s", before.Verdict, before.Summary, got.reason, got.message)
	}
	before.checkAgainst(ctx, t, step{Outcome: before.Verdict}, got)
	after, err := why(t, c.kubeconfig, namespace, pod)
	if err != nil {
		t.Fatal(err)
	}
	after.checkForm(t)
	after.checkAfter(t, step{Outcome: before.Verdict}, got)
}

// TestWhyOnOldAPI asks a server that has nothing newer than v1beta1. There is
// no scheduler: this one needs a newer API.
func TestWhyOnOldAPI(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, controlplane.Options{
		EmulatedVersion: "1.35",
		RuntimeConfig: map[string]bool{
			"resource.k8s.io/v1":      false,
			"resource.k8s.io/v1beta2": false,
			"resource.k8s.io/v1beta1": true,
		},
		WithoutScheduler: true,
	})
	const objects = `
{apiVersion: v1, kind: Namespace, metadata: {name: old}}
---
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}}
---
apiVersion: resource.k8s.io/v1beta1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: a}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, basic: {attributes: {model: {string: A}}}}
  - {name: gpu-1, basic: {attributes: {model: {string: B}}, capacity: {memory: {value: 80Gi}}}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: one}
spec: {devices: {requests: [{name: gpu, deviceClassName: gpu, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'B'"}}]}]}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: three}
spec: {devices: {requests: [{name: gpu, deviceClassName: gpu, count: 3}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: one}]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: three}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: three}]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]
`
	for document := range strings.SplitSeq(objects, "\n---\n") {
		object, err := parseObject([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.create(ctx, "old", object); err != nil {
			t.Fatal(err)
		}
	}

	one, err := why(t, c.kubeconfig, "old", "one")
	if err != nil {
		t.Fatal(err)
	}
	if one.Verdict != api.Fits {
		t.Fatalf("verdict %s: %s", one.Verdict, one.Summary)
	}
	if device := one.Placement.Claims[0].Devices[0]; device.Device != "gpu-1" {
		t.Errorf("placement is %s, only gpu-1 matches", describeDevice(device))
	}
	one.checkForm(t)
	one.checkReplay(ctx, t)

	three, err := why(t, c.kubeconfig, "old", "three")
	if err != nil {
		t.Fatal(err)
	}
	if three.Verdict != api.DoesNotFit {
		t.Errorf("verdict %s: %s", three.Verdict, three.Summary)
	}
	three.checkForm(t)
}
