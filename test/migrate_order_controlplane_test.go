// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
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
	// settled waits until so many pods have nodes, others are known not to fit, and workloads that
	// moved have no pod left that asks for the resource of the device plugin.
	moved := map[string]bool{}
	settled := func(placed, waiting int) {
		t.Helper()
		var with, without int
		if err := poll(t.Context(), func() bool {
			pods, err := c.pods.Pods(ns).List(labels.Everything())
			with, without = 0, 0
			for _, pod := range pods {
				switch {
				case moved[pod.Labels["app"]] && len(facts.ExtendedResources(pod)) > 0:
					return false
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
		plan := c.migration(t)
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
		name := next.Nodes[0]
		left := make(chan error, 1)
		go func() { left <- c.leaves(t.Context(), name) }()
		c.pasteAll(t, next.Commands)
		if err := <-left; err != nil {
			t.Fatal(err)
		}
		c.createAll(t, ns, slice(name))
		for i := range plan.Workloads {
			if w := &plan.Workloads[i]; slices.Contains(next.Moves, w.Object) {
				c.pasteAll(t, w.Commands)
				moved[w.Object.Name] = true
			}
		}
		settled(4-next.Waiting, next.Waiting)
	}
}

// migration returns the plan for all namespaces, with all times that it has in commands.
func (c *cluster) migration(t *testing.T) *api.Migration {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	if code := commands.Run(t.Context(), []string{"migrate", "-o", "json", "--kubeconfig", c.kubeconfig}, streams, commands.Build{Version: "v0.0.0-test"}); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	plan := &api.Migration{}
	if err := json.Unmarshal(out.Bytes(), plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// leaves takes the resource of the device plugin from a node once the label of the node says so, as
// the kubelet does.
func (c *cluster) leaves(ctx context.Context, node string) error {
	err := poll(ctx, func() bool {
		n, err := c.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		return err == nil && n.Labels["nvidia.com/gpu.deploy.device-plugin"] == "false"
	})
	if err != nil {
		return fmt.Errorf("wait for the label of node %s: %w", node, err)
	}
	patch := `{"status": {"allocatable": {"nvidia.com/gpu": "0"}, "capacity": {"nvidia.com/gpu": "0"}}}`
	if _, err := c.kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("change node %s: %w", node, err)
	}
	return nil
}
