// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const impactObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: moves}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: moves}
spec: {selectors: [{cel: {expression: device.driver == "moves.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: later}
spec: {selectors: [{cel: {expression: device.driver == "later.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: moves}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: later}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: later}}]}}
`

// moved is a cluster in which pods have to leave.
type moved struct {
	*cluster
	t *testing.T
}

// TestImpactIsWhatHappens asks what a drain, a taint and a changed class would do, does
// it, and compares what the real controllers and the scheduler make of it.
func TestImpactIsWhatHappens(t *testing.T) {
	m := moved{startCluster(t, controlplane.Options{
		FeatureGates:  map[string]bool{"DRADeviceTaintRules": true},
		RuntimeConfig: map[string]bool{"resource.k8s.io/v1beta2": true},
	}), t}
	const spec = "resourceClaims: [{name: gpu, resourceClaimTemplateName: one}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]"
	m.createAll(t, "moves", impactObjects)
	// The questions are about all namespaces, and name one that exists.
	m.createAll(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: ml}}")
	m.node("first", "{name: gpu-0}, {name: gpu-1}, {name: gpu-2}")
	m.createAll(t, "moves", "{apiVersion: v1, kind: Pod, metadata: {name: bare}, spec: {"+spec+"}}")
	m.createAll(t, "moves", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {"+spec+"}}}}")
	m.createAll(t, "moves", "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: example.com/none}]}}}}")
	m.until("all pods are on the first node", func() bool {
		return len(m.on("first", "web")) == 2 && len(m.on("first", "bare")) == 1 && len(m.on("first", "agent")) == 1
	})
	m.node("second", "{name: gpu-0}")

	t.Run("drain", func(t *testing.T) {
		found := m.ask(t, 1, "impact", "drain", "first")
		want := api.ImpactCounts{Evicted: 3, Placed: 1, NoPlace: 1, NotRecreated: 1}
		if found.Counts != want {
			t.Fatalf("counts %+v, want %+v", found.Counts, want)
		}
		mustDo(t, func() error {
			_, err := m.kube.CoreV1().Nodes().Patch(t.Context(), "first", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
			return err
		})
		for _, pod := range found.Pods {
			if pod.Effect != api.EffectEvicted {
				continue
			}
			mustDo(t, func() error {
				return m.kube.PolicyV1().Evictions("moves").Evict(t.Context(), &policyapi.Eviction{
					ObjectMeta: metav1.ObjectMeta{Namespace: "moves", Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
				})
			})
		}
		m.until("one pod has a place and the other has none", func() bool {
			return len(m.on("second", "web")) == found.Counts.Placed && len(m.rejected("web")) == found.Counts.NoPlace
		})
		if left := m.on("first", ""); len(left) != 1 || len(m.on("first", "agent")) != 1 || len(m.on("second", "bare")) != 0 {
			t.Errorf("left on the node: %v", left)
		}
	})
	t.Run("taint", func(t *testing.T) {
		found := m.ask(t, 1, "impact", "taint", "worn:NoExecute", "--pool", "second")
		if want := (api.ImpactCounts{Evicted: 1, NoPlace: 1}); found.Counts != want || found.Pods[0].Node != "second" {
			t.Fatalf("counts %+v, want %+v, pods %+v", found.Counts, want, found.Pods)
		}
		programFor(t, m.kubeconfig).output(t, "taints", "add", "worn:NoExecute", "--pool", "second", "--name", "worn", "--yes")
		m.until("the pod is evicted, and both have no place", func() bool { return len(m.on("second", "web")) == 0 && len(m.rejected("web")) == 2 })
		// The way back: the scheduler places one of the pods that wait.
		programFor(t, m.kubeconfig).output(t, "taints", "remove", "worn")
	})
	t.Run("class", func(t *testing.T) {
		m.createAll(t, "moves", "{apiVersion: v1, kind: Pod, metadata: {name: later, labels: {app: later}}, spec: {resourceClaims: [{name: gpu, resourceClaimName: later}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]}}")
		// The evicted pod, which no kubelet ends, keeps the device of the second node.
		m.node("third", "{name: gpu-0}, {name: gpu-1}")
		m.until("both pods have a place again", func() bool { return len(m.rejected("web")) == 0 && len(m.rejected("later")) == 1 })
		m.node("fourth", "{name: gpu-0}")
		class := filepath.Join(t.TempDir(), "class.yaml")
		text := `{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "later"}, "spec": {"selectors": [{"cel": {"expression": "device.driver == 'moves.example.com'"}}]}}`
		mustDo(t, func() error { return os.WriteFile(class, []byte(text), 0o600) })
		found := m.ask(t, 0, "impact", "apply", "-f", class)
		if len(found.Pods) != 1 || found.Pods[0].Effect != api.EffectFitGained || found.Pods[0].Name != "later" {
			t.Fatalf("pods %+v", found.Pods)
		}
		mustDo(t, func() error {
			_, err := m.kube.ResourceV1().DeviceClasses().Patch(t.Context(), "later", types.MergePatchType, []byte(text), metav1.PatchOptions{})
			return err
		})
		m.until("the pod is where it was said to fit", func() bool { return len(m.on(found.Pods[0].Placement.Node, "later")) == 1 })
	})
}

// ask runs the program, which has to end with a code.
func (m moved) ask(t *testing.T, code int, args ...string) *api.Impact {
	t.Helper()
	got := invoke(t.Context(), m.kubeconfig, append(args, "-o", "json")...)
	if got.code != code {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got.code, code, got.out, got.errOut)
	}
	found := &api.Impact{}
	if err := json.Unmarshal([]byte(got.out), found); err != nil {
		t.Fatal(err)
	}
	return found
}

func (m moved) node(name, devices string) {
	m.t.Helper()
	m.createAll(m.t, "moves", fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %[1]s}
`+readyNode+`---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s}
spec: {driver: moves.example.com, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [%[2]s]}
`, name, devices))
}

func (m moved) until(what string, done func() bool) {
	m.t.Helper()
	if err := poll(m.t.Context(), done); err != nil {
		m.t.Fatalf("wait until %s: %v; on first %v, on second %v, rejected %v", what, err, m.on("first", ""), m.on("second", ""), m.rejected(""))
	}
}

// podsOf lists the pods of an app, or with that name, that are not being deleted; all for
// an empty name.
func (m moved) podsOf(app string) []*corev1.Pod {
	m.t.Helper()
	pods, err := m.cluster.pods.Pods("moves").List(labels.Everything())
	if err != nil {
		m.t.Fatal(err)
	}
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || app != "" && pod.Labels["app"] != app && pod.Name != app
	})
}

// on lists the pods of an app that the scheduler has put on a node.
func (m moved) on(node, app string) []string {
	var names []string
	for _, pod := range m.podsOf(app) {
		if pod.Spec.NodeName == node && m.decided(pod).reason == scheduled {
			names = append(names, pod.Name)
		}
	}
	return names
}

// rejected lists the pods that the scheduler has found no node for.
func (m moved) rejected(app string) []string {
	var names []string
	for _, pod := range m.podsOf(app) {
		if pod.Spec.NodeName == "" && m.decided(pod).reason == unschedulable {
			names = append(names, pod.Name)
		}
	}
	return names
}
