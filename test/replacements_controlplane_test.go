// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

const replacementObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: spare}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: spare}
spec: {selectors: [{cel: {expression: device.driver == "spare.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: spare}}]}}}
`

// TestReplacementsLandWhereThePreviewSays taints the devices of a node, and compares the
// nodes of the Deployment's new pods with the preview.
func TestReplacementsLandWhereThePreviewSays(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, controlplane.Options{
		FeatureGates:  map[string]bool{"DRADeviceTaintRules": true},
		RuntimeConfig: map[string]bool{"resource.k8s.io/v1beta2": true},
	})
	p := programFor(t, c.kubeconfig)
	c.createAll(t, "spare", replacementObjects)
	node := func(name string, devices string) {
		c.createAll(t, "spare", fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %[1]s}
`+readyNode+`---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s}
spec: {driver: spare.example.com, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [%[2]s]}
`, name, devices))
	}
	node("sick", "{name: gpu-0}, {name: gpu-1}, {name: gpu-2}")
	placedPods := func(on string) (names []string) {
		pods, err := c.pods.Pods("spare").List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods {
			if pod.DeletionTimestamp == nil && pod.Spec.NodeName == on && c.decided(pod).reason == scheduled {
				names = append(names, pod.Name)
			}
		}
		return names
	}
	// The bare pod is the oldest.
	const spec = "resourceClaims: [{name: gpu, resourceClaimTemplateName: one}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]"
	c.createAll(t, "spare", "{apiVersion: v1, kind: Pod, metadata: {name: bare}, spec: {"+spec+"}}")
	mustDo(t, func() error { return poll(ctx, func() bool { return len(placedPods("sick")) == 1 }) })
	c.createAll(t, "spare", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {"+spec+"}}}}")
	mustDo(t, func() error { return poll(ctx, func() bool { return len(placedPods("sick")) == 3 }) })
	node("well", "{name: gpu-0}, {name: gpu-1}")

	out := p.output(t, "taints", "add", "--name", "sick", "--pool", "sick", "maintenance=fan:NoExecute", "--yes")
	for _, want := range []string{
		`(?m)^  spare/bare would be evicted at once\n    bare pod  not created again; no place for one like it$`,
		`(?m)^  spare/web-\S+ would be evicted at once\n    deployment/web  -> well\n  spare/web-\S+ would be evicted at once\n    deployment/web  -> well$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the preview does not say %s:\n%s", want, out)
		}
	}
	if err := poll(ctx, func() bool { return len(placedPods("well")) == 2 && len(placedPods("sick")) == 0 }); err != nil {
		t.Errorf("on node well: %v, on node sick: %v", placedPods("well"), placedPods("sick"))
	}
	if pod, err := c.pods.Pods("spare").Get("bare"); err == nil && pod.DeletionTimestamp == nil {
		t.Errorf("pod bare is %s", pod.Status.Phase)
	}
}
