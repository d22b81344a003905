// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestMigrateInOrder takes the steps of "migrate" as they are printed, on a real control plane: after
// each, as many pods wait as it said, the workloads that it moves run with claims, and at last no step
// is left. The test is the device plugin, which leaves the node when the label says so, and the driver.
func TestMigrateInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c := startCluster(t, everything())
	const ns = "ml"
	node := func(name string, plugin bool) string {
		status := readyNode
		if plugin {
			status = strings.ReplaceAll(status, `pods: "110"`, `pods: "110", nvidia.com/gpu: "4"`)
		}
		return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {kubernetes.io/hostname: %[1]s, nvidia.com/gpu.deploy.device-plugin: \"true\"}}\n%s", name, strings.TrimSuffix(status, "\n"))
	}
	slice := func(name string) string {
		return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %s}
spec:
  driver: gpu.nvidia.com
  nodeName: %[1]s
  pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}, {name: gpu-3}]`, name)
	}
	deployment := func(name string, replicas, gpus int) string {
		return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: ml}
spec:
  replicas: %d
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: "100%%"}}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: example.com/none, resources: {limits: {nvidia.com/gpu: "%d"}}}]`, name, replicas, gpus)
	}
	c.createAll(t, ns, strings.Join([]string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}",
		node("one", true), node("two", true), node("three", true), node("driver", false), slice("driver"),
		"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.nvidia.com}\nspec: {selectors: [{cel: {expression: \"device.driver == 'gpu.nvidia.com'\"}}]}",
		deployment("big", 3, 3), deployment("small", 1, 1),
	}, "\n---\n"))
	// settled waits until so many pods have nodes, and others are known not to fit.
	settled := func(placed, waiting int) {
		t.Helper()
		var with, without int
		if err := poll(t.Context(), func() bool {
			pods, err := c.pods.Pods(ns).List(labels.Everything())
			with, without = 0, 0
			for _, pod := range pods {
				switch {
				case pod.DeletionTimestamp != nil:
				case pod.Spec.NodeName != "":
					with++
				case c.decided(pod).reason != "":
					without++
				}
			}
			return err == nil && with == placed && without == waiting
		}); err != nil {
			t.Fatalf("%d pods have nodes and %d wait, want %d and %d: %v", with, without, placed, waiting, err)
		}
	}
	settled(4, 0)
	for step := 1; ; step++ {
		var plan api.Migration
		c.askJSON(t, &plan, "migrate", "-A")
		if len(plan.Steps) == 0 {
			if step != 4 || plan.Undecided != "" || len(plan.Workloads) > 0 {
				t.Errorf("after %d steps: %+v", step-1, plan)
			}
			return
		}
		next := plan.Steps[0]
		t.Logf("step %d: %v, %d wait, move %v", step, next.Nodes, next.Waiting, next.Moves)
		if next.Devices != 4 || len(next.Nodes) != 1 {
			t.Fatalf("step %d: %+v", step, next)
		}
		c.pasteAll(t, next.Commands)
		name := next.Nodes[0]
		mustDo(t, func() error {
			n, err := c.kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := n.Labels["nvidia.com/gpu.deploy.device-plugin"]; got != "false" || n.Spec.Unschedulable {
				t.Fatalf("node %s: label %q, cordoned: %v", name, got, n.Spec.Unschedulable)
			}
			patch, err := json.Marshal([]map[string]any{{"op": "remove", "path": "/status/allocatable/nvidia.com~1gpu"}, {"op": "remove", "path": "/status/capacity/nvidia.com~1gpu"}})
			if err != nil {
				return err
			}
			_, err = c.kube.CoreV1().Nodes().Patch(t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
			return err
		})
		c.createAll(t, ns, slice(name))
		for i := range plan.Workloads {
			if w := &plan.Workloads[i]; slices.Contains(next.Moves, w.Object) {
				c.pasteAll(t, w.Commands)
			}
		}
		settled(4-next.Waiting, next.Waiting)
	}
}
