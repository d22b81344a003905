// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// TestSharing pastes the commands that "sharing --commands" prints, on a real control plane: the scheduler
// places both pods of each manifest.
func TestSharing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c := startCluster(t, everything())
	const ns = "ml"
	c.createAll(t, ns, strings.TrimPrefix(`
apiVersion: v1
kind: Namespace
metadata: {name: ml}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {kubernetes.io/hostname: node-1}}
`+readyNode+`---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: sets}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: card-0, counters: {memory: {value: 80Gi}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: devices}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 2}
  devices:
  - {name: half-0, attributes: {profile: {string: half}}, consumesCounters: [{counterSet: card-0, counters: {memory: {value: 40Gi}}}]}
  - {name: half-1, attributes: {profile: {string: half}}, consumesCounters: [{counterSet: card-0, counters: {memory: {value: 40Gi}}}]}
  - {name: shared, allowMultipleAllocations: true, capacity: {memory: {value: 32Gi}}}
  - {name: plain-0}
  - {name: plain-1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: sliced, namespace: ml}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu}}]
    config: [{opaque: {driver: gpu.example.com, parameters: {apiVersion: gpu.example.com/v1, kind: Settings, sharing: {strategy: TimeSlicing}}}}]`, "\n"))
	var found api.Sharing
	c.askJSON(t, &found, "sharing", "gpu", "-n", ns)
	for i := range found.Ways {
		if w := &found.Ways[i]; !w.Available || w.Verdict != api.Fits || w.Manifest == "" {
			t.Fatalf("%s: %+v", w.Method, w)
		}
	}
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	code := commands.Run(t.Context(), []string{"sharing", "gpu", "--kubeconfig", c.kubeconfig, "-n", ns, "--commands"}, streams, commands.Build{Version: "v0.0.0-test"})
	var pasted []string
	for _, part := range strings.Split(out.String(), "kubectl apply")[1:] {
		documents, _, _ := strings.Cut(part, "\nEOF\n")
		pasted = append(pasted, "kubectl apply"+documents+"\nEOF")
	}
	if code != 0 || len(pasted) != 4 {
		t.Fatalf("exit code %d, want 4 commands: %s", code, out)
	}
	// Pods of partitions and of shared capacity take devices that others could have got: they come first.
	slices.SortStableFunc(pasted, func(a, b string) int {
		return strings.Count(b, "expression") - strings.Count(a, "expression")
	})
	for _, command := range pasted {
		c.pasteAll(t, []string{command})
		var pods *corev1.PodList
		if err := poll(t.Context(), func() bool {
			var err error
			pods, err = c.kube.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
			return err == nil && !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" })
		}); err != nil {
			t.Fatalf("not all pods are placed after %s: %v", command, err)
		}
	}
	claims, err := c.kube.ResourceV1().ResourceClaims(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	devices := map[string][]string{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			devices[result.Device] = append(devices[result.Device], claim.Name)
		}
		if shared := claim.Name == "shared-claim" || claim.Name == "shared-settings"; shared && len(claim.Status.ReservedFor) != 2 {
			t.Errorf("claim %s is reserved for %v, want two pods", claim.Name, claim.Status.ReservedFor)
		}
	}
	if len(devices["shared"]) < 2 || len(devices["half-0"]) != 1 || len(devices["half-1"]) != 1 {
		t.Errorf("claims by device: %v", devices)
	}
}
