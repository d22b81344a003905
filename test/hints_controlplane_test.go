// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestWhyHints asks about a pod that waits for things that the allocator knows
// nothing of: the DaemonSet controller finds no node for the plugin of the
// driver, the API server drops a field, and Kueue does not admit the pod.
func TestWhyHints(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, controlplane.Options{
		FeatureGates:     map[string]bool{"DRADeviceTaints": false, "DRADeviceTaintRules": false},
		WithoutScheduler: true,
	})
	const objects = `
{apiVersion: v1, kind: Namespace, metadata: {name: hints}}
---
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec:
      nodeSelector: {example.com/gpu: present}
      containers: [{name: plugin, image: example.com/plugin, env: [{name: DRIVER, value: gpu.example.com}]}]
      volumes: [{name: registry, hostPath: {path: /var/lib/kubelet/plugins_registry}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: workloads.kueue.x-k8s.io
  # Groups under k8s.io need a word about their approval.
  annotations: {api-approved.kubernetes.io: "unapproved, a stand-in for tests"}
spec:
  group: kueue.x-k8s.io
  scope: Namespaced
  names: {kind: Workload, plural: workloads, singular: workload}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: localqueues.kueue.x-k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, a stand-in for tests"}
spec:
  group: kueue.x-k8s.io
  scope: Namespaced
  names: {kind: LocalQueue, plural: localqueues, singular: localqueue}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterqueues.kueue.x-k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, a stand-in for tests"}
spec:
  group: kueue.x-k8s.io
  scope: Cluster
  names: {kind: ClusterQueue, plural: clusterqueues, singular: clusterqueue}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  schedulingGates: [{name: kueue.x-k8s.io/admission}]
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]
`
	for document := range strings.SplitSeq(objects, "\n---\n") {
		object, err := parseObject([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.create(ctx, "hints", object); err != nil {
			t.Fatal(err)
		}
	}
	// cluster.create refuses a claim that is not stored as it is.
	c.createAsIs(ctx, t, "resource.k8s.io/v1", "resourceclaims", `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: >
      {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"gpu"},
      "spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu","tolerations":[{"operator":"Exists"}]}}]}}}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, tolerations: [{operator: Exists}]}}]}}
`)
	c.createAsIs(ctx, t, "kueue.x-k8s.io/v1beta2", "workloads", `
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: pod-train-1234, ownerReferences: [{apiVersion: v1, kind: Pod, name: train, uid: of-the-pod}]}
spec: {queueName: team, podSets: []}
status: {conditions: [{type: QuotaReserved, status: "False", reason: Inadmissible, message: DeviceClass gpu is not mapped, lastTransitionTime: "2026-10-05T09:31:00Z"}]}
`)
	c.createAsIs(ctx, t, "kueue.x-k8s.io/v1beta2", "localqueues", `
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: research}
`)
	c.createAsIs(ctx, t, "kueue.x-k8s.io/v1beta2", "clusterqueues", `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec: {stopPolicy: Hold}
status: {conditions: [{type: Active, status: "False", reason: Stopped, message: "Can't admit new workloads: is stopped.", lastTransitionTime: "2026-10-05T09:31:00Z"}]}
`)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		set, err := c.kube.AppsV1().DaemonSets("hints").Get(ctx, "plugin", metav1.GetOptions{})
		return err == nil && set.Status.ObservedGeneration == set.Generation, err
	})
	if err != nil {
		t.Fatal(err)
	}

	got, err := why(t, c.kubeconfig, "hints", "train")
	if err != nil {
		t.Fatal(err)
	}
	got.checkForm(t)
	got.checkReplay(ctx, t)
	if want := "driver gpu.example.com publishes nothing"; got.Verdict != api.DoesNotFit || !strings.Contains(got.Summary, want) {
		t.Errorf("verdict %s (%s), want that %s", got.Verdict, got.Summary, want)
	}
	if want := "Kueue has not admitted Workload hints/pod-train-1234 of queue team: DeviceClass gpu is not mapped (QuotaReserved, Inadmissible); ClusterQueue research is not active: Can't admit new workloads: is stopped (Active, Stopped)"; got.Stage != api.StageAdmission || !strings.Contains(got.Summary, want) {
		t.Errorf("stage %s (%s), want that %s", got.Stage, got.Summary, want)
	}
	var hints []string
	for _, hint := range got.Hints {
		hints = append(hints, hint.Text)
	}
	for _, want := range []string{
		"DaemonSet hints/plugin wants pods on 0 nodes and has none for a: no label example.com/gpu=present",
		"ResourceClaim hints/gpu lacks the field spec.devices.requests[0].exactly.tolerations",
	} {
		if !strings.Contains(strings.Join(hints, "\n"), want) {
			t.Errorf("no hint says %q: %q", want, hints)
		}
	}
}

// createAsIs creates an object of the namespace hints, whatever the API server
// makes of it.
func (c *cluster) createAsIs(ctx context.Context, t *testing.T, apiVersion, resource, document string) {
	t.Helper()
	object, err := parseObject([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		t.Fatal(err)
	}
	for i, owner := range object.GetOwnerReferences() {
		pod, err := c.kube.CoreV1().Pods("hints").Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owners := object.GetOwnerReferences()
		owners[i].UID = pod.UID
		object.SetOwnerReferences(owners)
	}
	c.createCustom(ctx, t, "hints", gv.WithResource(resource), object)
}

// createCustom creates an object of a kind that is served a moment after its
// definition, in a namespace unless it is a ClusterQueue.
func (c *cluster) createCustom(ctx context.Context, t *testing.T, namespace string, resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	t.Helper()
	if object.GetKind() == "ClusterQueue" {
		namespace = ""
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := c.dynamic.Resource(resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
