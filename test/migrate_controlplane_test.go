// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestMigrate moves workloads from a device plugin to a driver with the commands that "migrate"
// prints, on a real control plane: the scheduler places their new pods where the driver is, and the
// quota for claims limits them.
func TestMigrate(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c := startCluster(t, everything())
	const ns = "ml"
	c.createAll(t, ns, strings.ReplaceAll(strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: ml}
---
apiVersion: v1
kind: Node
metadata: {name: plugin, labels: {kubernetes.io/hostname: plugin, nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
$PLUGIN
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: ml}
spec: {hard: {requests.nvidia.com/gpu: "8"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ml}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
      initContainers: [{name: warm-up, image: example.com/none, resources: {limits: {nvidia.com/gpu: "1"}}}]
      containers: [{name: main, image: example.com/none, resources: {limits: {nvidia.com/gpu: "2", memory: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: ml}
spec:
  nodeSelector: {kubernetes.io/hostname: driver}
  containers:
  - {name: first, image: example.com/none, resources: {limits: {nvidia.com/gpu: "1"}}}
  - {name: second, image: example.com/none, resources: {limits: {nvidia.com/gpu: "1"}}}
`, "$PLUGIN", strings.TrimSuffix(strings.ReplaceAll(readyNode, `pods: "110"`, `pods: "110", nvidia.com/gpu: "8"`), "\n")), "\n\n", "\n"))
	placed := func(node string, wanted ...string) {
		t.Helper()
		var found []string
		if err := poll(t.Context(), func() bool {
			pods, err := c.pods.Pods(ns).List(labels.Everything())
			if err != nil {
				return false
			}
			found = nil
			for _, pod := range pods {
				if pod.Spec.NodeName == node && c.decided(pod).reason == scheduled {
					found = append(found, pod.Name[:min(len(pod.Name), len("bare"))])
				}
			}
			return !slices.ContainsFunc(wanted, func(name string) bool {
				return !slices.ContainsFunc(found, func(got string) bool { return strings.HasPrefix(got, name) })
			})
		}); err != nil {
			t.Fatalf("on node %s are %v, want %v: %v", node, found, wanted, err)
		}
	}
	placed("plugin", "web")
	// The driver starts on another node.
	c.createAll(t, ns, strings.TrimPrefix(`
apiVersion: v1
kind: Node
metadata: {name: driver, labels: {kubernetes.io/hostname: driver}}
`+readyNode+`---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: driver}
spec:
  driver: gpu.nvidia.com
  nodeName: driver
  pool: {name: driver, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {type: {string: gpu}, productName: {string: NVIDIA H100 80GB HBM3}}}
  - {name: gpu-1, attributes: {type: {string: gpu}, productName: {string: NVIDIA H100 80GB HBM3}}}
  - {name: gpu-2, attributes: {type: {string: gpu}, productName: {string: NVIDIA L4}}}
  - {name: gpu-3, attributes: {type: {string: gpu}, productName: {string: NVIDIA L4}}}`, "\n"))
	var found api.Migration
	c.askJSON(t, &found, "migrate")
	if len(found.Workloads) != 2 || len(found.Quotas) != 1 {
		t.Fatalf("%+v", found)
	}
	for i := range found.Workloads {
		w := &found.Workloads[i]
		if w.Way != api.MigrationClaims || w.Verdict != api.Fits || len(w.Commands) < 2 {
			t.Fatalf("%s: %s %s, %s: %s", w.Object, w.Way, w.Reason, w.Verdict, w.Summary)
		}
		c.pasteAll(t, w.Commands)
	}
	placed("driver", "web", "bare")
	c.pasteAll(t, found.Quotas[0].Commands)
	quota := "gpu.nvidia.com" + corev1.ResourceClaimsPerClass
	if got, err := c.kubectl(t, "get", "resourcequota", "gpus", "-n", ns, "-o", "jsonpath={.spec.hard}"); err != nil || !strings.Contains(got, `"`+quota+`":"8"`) {
		t.Errorf("%s, %v", got, err)
	}
	pods, err := c.pods.Pods(ns).List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == "driver" && len(facts.ExtendedResources(pod)) > 0 {
			t.Errorf("pod %s still asks for %v", pod.Name, facts.ExtendedResources(pod))
		}
	}
	var after api.Migration
	c.askJSON(t, &after, "migrate")
	for i := range after.Workloads {
		if w := &after.Workloads[i]; w.Object.Kind == api.KindPod {
			t.Errorf("%s still has to move: %s", w.Object, w.Reason)
		}
	}
}
