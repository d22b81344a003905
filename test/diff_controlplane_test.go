// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const diffObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: diff}}
---
apiVersion: v1
kind: Node
metadata: {name: diff-a}
` + readyNode + `---
apiVersion: v1
kind: Node
metadata: {name: diff-b}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: diff}
spec: {selectors: [{cel: {expression: "device.driver == 'diff.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: diff-a}
spec:
  driver: diff.example.com
  nodeName: diff-a
  pool: {name: diff-a, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: diff-b}
spec:
  driver: diff.example.com
  nodeName: diff-b
  pool: {name: diff-b, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
`

const diffPod = `
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: two}, spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: diff, count: 2}}]}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: train}, spec: {resourceClaims: [{name: gpus, resourceClaimName: two}],
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]}}
`

// TestDiffAgainstCluster changes a cluster in two places after a snapshot. The change that keeps the
// scheduler from placing a pod is the one to undo; once that is undone, the scheduler places it.
func TestDiffAgainstCluster(t *testing.T) {
	c := startCluster(t, everything())
	c.createAll(t, "diff", diffObjects)
	p := programFor(t, c.kubeconfig)
	before := filepath.Join(t.TempDir(), "before.yaml.gz")
	if code, out, message := p.tried(t, "snapshot", "-o", before); code != 0 {
		t.Fatal(code, out, message)
	}
	all := []resourceapi.Device{{Name: "gpu-0"}, {Name: "gpu-1"}}
	publish := func(slice string, devices []resourceapi.Device) {
		t.Helper()
		mustDo(t, func() error {
			s, err := c.kube.ResourceV1().ResourceSlices().Get(t.Context(), slice, metav1.GetOptions{})
			if err != nil {
				return err
			}
			s.Spec.Pool.Generation++
			s.Spec.Devices = devices
			_, err = c.kube.ResourceV1().ResourceSlices().Update(t.Context(), s, metav1.UpdateOptions{})
			return err
		})
	}
	publish("diff-a", all[:1])
	publish("diff-b", append(slices.Clone(all[:1]), resourceapi.Device{Name: "other", Taints: []resourceapi.DeviceTaint{{Key: "example.com/broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}}}))
	c.createAll(t, "diff", diffPod)
	if got := c.decision(t.Context(), "diff", "train", func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Fatalf("the scheduler decided %+v", got)
	}

	compare := func() *api.Difference {
		t.Helper()
		code, out, message := p.tried(t, "diff", before, "-o", "json")
		var d api.Difference
		if err := json.Unmarshal([]byte(out), &d); err != nil || code != 1 {
			t.Fatal(code, err, message)
		}
		return &d
	}
	found := compare()
	if len(found.Answers) != 1 {
		t.Fatalf("the answers are %+v", found.Answers)
	}
	answer := found.Answers[0]
	if answer.Object != api.Ref(api.KindPod, "diff", "train") || answer.Was.Verdict != api.Fits || answer.Is.Verdict != api.DoesNotFit {
		t.Errorf("the answer is %+v", answer)
	}
	if len(answer.Undo) != 1 || len(answer.Undo[0].Objects) != 1 || answer.Undo[0].Objects[0].Object.Name != "diff-a" {
		t.Fatalf("to be undone is %+v", answer.Undo)
	}

	publish("diff-a", all)
	if got := c.decision(t.Context(), "diff", "train", func(d decision) bool { return d.reason == scheduled }); got.node != "diff-a" {
		t.Errorf("with the change undone, the scheduler decided %+v", got)
	}
	if after := compare(); len(after.Answers) > 0 {
		t.Errorf("the answers are still %+v", after.Answers)
	}
}
