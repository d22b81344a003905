// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// domainObjects are a pod on node gpu-2 with an allocated claim for the ComputeDomain
// whose UID stands for $DOMAIN, and what the plugin of the driver has done so far.
const domainObjects = `
{apiVersion: v1, kind: Node, metadata: {name: gpu-1, labels: {resource.nvidia.com/computeDomain: $DOMAIN, nvidia.com/gpu.clique: fabric.1}}, status: {conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: gpu-2, labels: {resource.nvidia.com/computeDomain: $DOMAIN, nvidia.com/gpu.clique: fabric.1}}, status: {conditions: [{type: Ready, status: "True"}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: channel}
spec:
  devices:
    requests: [{name: channel, exactly: {deviceClassName: compute-domain-default-channel.nvidia.com}}]
    config:
    - requests: [channel]
      opaque: {driver: compute-domain.nvidia.com, parameters: {apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomainChannelConfig, domainID: $DOMAIN, allocationMode: Single}}
status:
  allocation:
    devices:
      results: [{request: channel, driver: compute-domain.nvidia.com, pool: gpu-2, device: channel-0}]
      config:
      - source: FromClaim
        requests: [channel]
        opaque: {driver: compute-domain.nvidia.com, parameters: {apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomainChannelConfig, domainID: $DOMAIN, allocationMode: Single}}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [gpu-2]}]}]}
  reservedFor: [{resource: pods, name: worker, uid: $POD}]
---
apiVersion: v1
kind: Event
metadata: {name: worker.1}
involvedObject: {kind: Pod, name: worker, namespace: ml, uid: $POD}
type: Warning
reason: FailedPrepareDynamicResources
message: 'Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim channel: prepare devices failed: error applying config: error asserting ComputeDomain Ready: current node not ready in ComputeDomain'
count: 3
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:01:00Z"
source: {component: kubelet, host: gpu-2}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: train-daemons, labels: {resource.nvidia.com/computeDomain: $DOMAIN}}
spec:
  selector: {matchLabels: {resource.nvidia.com/computeDomain: $DOMAIN}}
  template:
    metadata: {labels: {resource.nvidia.com/computeDomain: $DOMAIN}}
    spec: {containers: [{name: compute-domain-daemon, image: example.com/none}]}`

// domainDaemon is the pod that the DaemonSet would create.
const domainDaemon = `
apiVersion: v1
kind: Pod
metadata: {name: train-daemon, labels: {resource.nvidia.com/computeDomain: $DOMAIN}}
spec:
  nodeName: gpu-2
  containers: [{name: compute-domain-daemon, image: example.com/none}]`

// TestComputeDomains asks about a pod whose claim is for a ComputeDomain while the driver
// would bring that up, with what it writes at each step, also from a snapshot, and without
// what it takes to know.
func TestComputeDomains(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	c.createAll(t, "", `{apiVersion: v1, kind: Namespace, metadata: {name: ml}}`)
	pod, err := c.kube.CoreV1().Pods("ml").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "worker"},
		Spec: corev1.PodSpec{
			NodeName: "gpu-2", ResourceClaims: []corev1.PodResourceClaim{{Name: "channel", ResourceClaimName: new("channel")}},
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "channel"}}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crds, err := os.ReadFile("testdata/computedomain-crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.createAll(t, "", string(crds))
	domains := schema.GroupVersionResource{Group: snapshot.ComputeDomainGroup, Version: snapshot.ComputeDomainVersion, Resource: "computedomains"}
	custom := func(namespace, resource, text string) *unstructured.Unstructured {
		object, err := parseObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		at := domains
		at.Resource = resource
		c.createCustom(ctx, t, namespace, at, object)
		stored, err := c.dynamic.Resource(at).Namespace(namespace).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	domain := custom("ml", "computedomains", `{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, metadata: {name: train}, spec: {numNodes: 2, channel: {resourceClaimTemplate: {name: train-channel}}}}`)
	named := strings.NewReplacer("$DOMAIN", string(domain.GetUID()), "$POD", string(pod.UID))
	c.createAll(t, "ml", named.Replace(domainObjects))
	status := func(status string, nodes ...any) {
		current, err := c.dynamic.Resource(domains).Namespace("ml").Get(ctx, "train", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		current.Object["status"] = map[string]any{"status": status, "nodes": nodes}
		if _, err := c.dynamic.Resource(domains).Namespace("ml").UpdateStatus(ctx, current, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	node := func(name, status string) any {
		return map[string]any{"name": name, "ipAddress": "10.0.0.1", "cliqueID": "fabric.1", "index": int64(0), "status": status}
	}
	p := programFor(t, c.kubeconfig)
	wants := func(p *program, words string, args ...string) {
		t.Helper()
		_, out, errOut := p.tried(t, args...)
		if flat := strings.Join(strings.Fields(out+errOut), " "); !strings.Contains(flat, words) {
			t.Errorf("kubectl dra %s does not say %q:\n%s%s", strings.Join(args, " "), words, out, errOut)
		}
	}
	why := []string{"why", "pod/worker", "-n", "ml"}

	status("NotReady", node("gpu-1", "Ready"))
	wants(p, "no daemon of the domain is on the node, although there is DaemonSet ml/train-daemons; 1 of 2 nodes (numNodes) joined, 1 ready", why...)
	c.createAll(t, "ml", named.Replace(domainDaemon))
	wants(p, "Claim channel waits for node gpu-2 to be ready in ComputeDomain ml/train: its daemon ml/train-daemon is not ready: it is Pending; 1 of 2 nodes (numNodes) joined, 1 ready", why...)
	wants(p, "train NotReady 1/2", "claims", "-n", "ml", "-o", "wide")
	wants(p, "ComputeDomain ml/train (NotReady; 1 of 2 nodes (numNodes) joined, 1 ready)", "tree", "claim/channel", "-n", "ml")
	wants(p, "Node gpu-1 (Ready; clique fabric.1)", "tree", "claim/channel", "-n", "ml")
	wants(p, "Node gpu-2 (has not joined; clique fabric.1; daemon ml/train-daemon)", "tree", "claim/channel", "-n", "ml")

	// The cluster as it is now can be asked about later, under other names, too.
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	wants(p, "Saved 2 nodes", "snapshot", "-o", file)
	saved := *p
	saved.flags = []string{"--snapshot", file}
	wants(&saved, "its daemon ml/train-daemon is not ready", why...)
	redacted := filepath.Join(t.TempDir(), "redacted.yaml")
	wants(p, "Saved 2 nodes", "snapshot", "--redact", "-o", redacted)
	text, err := os.ReadFile(redacted)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpu-2", "fabric.1", "10.0.0.1", string(domain.GetUID()), "train"} {
		if strings.Contains(string(text), name) {
			t.Errorf("the redacted snapshot has %q", name)
		}
	}

	daemon, err := c.kube.CoreV1().Pods("ml").Get(ctx, "train-daemon", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	daemon.Status.Phase = corev1.PodRunning
	daemon.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := c.kube.CoreV1().Pods("ml").UpdateStatus(ctx, daemon, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wants(p, "its daemon ml/train-daemon is ready, but the node has not joined the domain", why...)

	// Newer releases of the driver write this first, and copy it into the status.
	custom("ml", "computedomaincliques", `{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomainClique, metadata: {name: x.fabric.1, labels: {resource.nvidia.com/computeDomain: `+string(domain.GetUID())+`}},
  daemons: [{nodeName: gpu-2, ipAddress: 10.0.0.2, cliqueID: fabric.1, index: 1, status: Ready}]}`)
	wants(p, "node gpu-2 is ready in ComputeDomain ml/train now", why...)
	status("Ready", node("gpu-1", "Ready"), node("gpu-2", "Ready"))
	wants(p, "Domain ComputeDomain ml/train is Ready: 2 of 2 nodes (numNodes) joined, 2 ready.", why...)

	if err := c.dynamic.Resource(domains).Namespace("ml").Delete(ctx, "train", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wants(p, "no ComputeDomain has the UID "+string(domain.GetUID()), why...)
	wants(p, "no ComputeDomain has the UID "+string(domain.GetUID()), "claims", "-n", "ml", "-o", "wide")

	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if err := c.dynamic.Resource(definitions).Delete(ctx, "computedomains.resource.nvidia.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitGone(t, definitions, "computedomains.resource.nvidia.com")
	wants(p, "what ComputeDomain "+string(domain.GetUID())+" lacks is not known: the API server has no computedomains.resource.nvidia.com of version v1beta1", why...)
}

// waitGone waits until an object without a namespace does not exist any more.
func (c *cluster) waitGone(t *testing.T, resource schema.GroupVersionResource, name string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := c.dynamic.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
