// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// outlookCase is a node with devices and a pod that does not fit on it.
type outlookCase struct {
	name string
	// devices are the devices of the node, holders the pods that get one each first.
	devices, holders int
	// asks is the number of devices that the pod wants, memory how much it wants of
	// that, and further a field of its spec.
	asks            int
	memory, further string
	// before changes the cluster after the holders were scheduled.
	before func(*testing.T, *cluster, string)
	want   api.Condition
	// comes makes the condition true. With stays, the pod is refused all the same.
	comes func(*testing.T, *cluster, string)
	stays bool
}

// outlookPod returns the pod that asks, with its template.
func outlookPod(namespace string, test *outlookCase) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: asks}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: %[1]s, count: %[2]d}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: asks, namespace: %[1]s}
spec:
  %[3]s
  resourceClaims: [{name: gpus, resourceClaimTemplateName: asks}]
  containers: [{name: main, image: example.com/none, resources: {requests: {memory: %[4]s}, claims: [{name: gpus}]}}]
`, namespace, test.asks, test.further, cmp.Or(test.memory, "1Gi"))
}

// holdersLeave deletes the pods that have the devices.
func holdersLeave(t *testing.T, c *cluster, namespace string) {
	t.Helper()
	mustDo(t, func() error {
		return c.kube.CoreV1().Pods(namespace).DeleteCollection(t.Context(), *metav1.NewDeleteOptions(0), metav1.ListOptions{LabelSelector: "holder=true"})
	})
}

func patchNode(t *testing.T, c *cluster, name, patch string) {
	t.Helper()
	mustDo(t, func() error {
		_, err := c.kube.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// TestOutlookAgreesWithScheduler asks about pods that the scheduler has refused,
// makes happen what the answer names, and lets the scheduler decide again.
func TestOutlookAgreesWithScheduler(t *testing.T) {
	c := startCluster(t, controlplane.Options{})
	c.createAll(t, "", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 1000}")
	oneMoreNode := func(t *testing.T, c *cluster, namespace string) {
		t.Helper()
		more := namespace + "-more"
		c.createAll(t, "", strings.ReplaceAll(`
apiVersion: v1
kind: Node
metadata: {name: $N, labels: {kubernetes.io/hostname: $N}}
`+readyNode, "$N", more))
		c.createAll(t, namespace, strings.ReplaceAll(queueSlice(more, 2), more+".example.com", namespace+".example.com"))
	}
	for _, test := range []outlookCase{
		{name: "claims", devices: 2, holders: 2, asks: 2, want: api.ClaimsReleased, comes: holdersLeave},
		{name: "priorities", devices: 1, holders: 1, asks: 1, further: "priorityClassName: urgent", want: api.LowerPrioritiesGone, comes: holdersLeave},
		{name: "never", devices: 2, holders: 2, asks: 3, want: api.Never, comes: holdersLeave, stays: true},
		{
			name: "cordoned", devices: 1, asks: 1, want: api.HardwareAlone,
			before: func(t *testing.T, c *cluster, node string) { patchNode(t, c, node, `{"spec":{"unschedulable":true}}`) },
			comes:  func(t *testing.T, c *cluster, node string) { patchNode(t, c, node, `{"spec":{"unschedulable":null}}`) },
		},
		{
			name: "memory", devices: 2, asks: 1, memory: "8Gi", want: api.HardwareAlone,
			before: func(t *testing.T, c *cluster, node string) {
				c.createAll(t, node, "{apiVersion: v1, kind: Pod, metadata: {name: batch, labels: {holder: \"true\"}}, spec: {nodeName: "+node+", containers: [{name: main, image: example.com/none, resources: {requests: {memory: 32Gi}}}]}}")
			},
			comes: holdersLeave,
		},
		{name: "more", devices: 2, holders: 2, asks: 2, want: api.ClaimsReleased, comes: oneMoreNode},
		{
			name: "apart", devices: 2, holders: 1, asks: 1, want: api.OneMoreNode, comes: oneMoreNode,
			further: "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {holder: \"plain\"}}}]}}",
			before: func(t *testing.T, c *cluster, node string) {
				c.createAll(t, node, "{apiVersion: v1, kind: Pod, metadata: {name: plain, labels: {holder: plain}}, spec: {nodeName: "+node+", containers: [{name: main, image: example.com/none}]}}")
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c.runOutlook(t, &test)
		})
	}
}

func (c *cluster) runOutlook(t *testing.T, test *outlookCase) {
	ctx, namespace := t.Context(), "outlook-"+test.name
	c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
	patchNode(t, c, namespace, `{"metadata":{"labels":{"kubernetes.io/hostname":"`+namespace+`"}}}`)
	c.createAll(t, namespace, queueSlice(namespace, test.devices))
	for i := range test.holders {
		name := fmt.Sprint("holder-", i)
		c.createAll(t, namespace, strings.Replace(queuePod(namespace, name, ""), "name: "+name, "labels: {holder: \"true\"}, name: "+name, 1))
		if got := c.decision(ctx, namespace, name, func(d decision) bool { return d.reason == scheduled }); got.reason != scheduled {
			t.Fatalf("the scheduler says about %s: %+v", name, got)
		}
	}
	if test.before != nil {
		test.before(t, c, namespace)
	}
	c.createAll(t, namespace, outlookPod(namespace, test))
	if got := c.decision(ctx, namespace, "asks", func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Fatalf("the scheduler says about the pod: %+v", got)
	}
	got := c.whyText(t, "pod/asks", "-n", namespace, "-o", "json")
	var e api.Explanation
	if err := json.Unmarshal([]byte(got.out), &e); err != nil {
		t.Fatalf("code %d, %v\n%s", got.code, err, got.errOut)
	}
	if e.Outlook == nil || e.Outlook.Fits != test.want {
		t.Fatalf("the outlook is %+v, want %s (%s)", e.Outlook, test.want, e.Summary)
	}
	t.Log(e.Outlook.Message)
	test.comes(t, c, namespace)
	if !test.stays {
		if got := c.decision(ctx, namespace, "asks", func(d decision) bool { return d.reason == scheduled }); got.reason != scheduled {
			t.Errorf("%s: the scheduler says then: %+v", e.Outlook.Message, got)
		}
		return
	}
	// It is known that the scheduler has looked again when it has scheduled a pod
	// that came later.
	c.createAll(t, namespace, queuePod(namespace, "later", ""))
	if got := c.decision(ctx, namespace, "later", func(d decision) bool { return d.reason == scheduled }); got.reason != scheduled {
		t.Fatalf("the scheduler says about a later pod: %+v", got)
	}
	if got := c.decision(ctx, namespace, "asks", func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Errorf("%s: the scheduler says then: %+v", e.Outlook.Message, got)
	}
}
