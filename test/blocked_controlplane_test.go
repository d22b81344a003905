// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const blockedCluster = `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Node
metadata: {name: a}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}, {name: gpu-3}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: four}
spec: {spec: {devices: {requests: [{name: gpu, firstAvailable: [{name: most, deviceClassName: gpu, count: 4}, {name: least, deviceClassName: gpu, count: 1}]}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus}
spec: {hard: {gpu.deviceclass.resource.k8s.io/devices: "3", limits.memory: 4Gi}}
status: {hard: {gpu.deviceclass.resource.k8s.io/devices: "3", limits.memory: 4Gi}, used: {gpu.deviceclass.resource.k8s.io/devices: "0", limits.memory: "0"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: sizes}
spec: {limits: [{type: Container, max: {cpu: "2"}, default: {cpu: "1", memory: 1Gi}, defaultRequest: {cpu: "1", memory: 1Gi}}]}
`

// TestBlockedAgreesWithAdmission asks about pods that a quota or a limit blocks, before and
// after they are created: the API server has to refuse the pods that should be refused,
// with the same numbers, and accept the pods that should fit.
func TestBlockedAgreesWithAdmission(t *testing.T) {
	c := startCluster(t, controlplane.Options{})
	c.createAll(t, "team", blockedCluster)
	manifest := func(name, template, resources string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: team}\nspec:\n  resourceClaims: [{name: gpu, resourceClaimTemplateName: " + template +
			"}]\n  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]" + resources + "}}]\n"
	}
	tests := []struct {
		name, pod string
		code      api.Code
		// refused is part of what the API server says to the pod, empty if it takes it.
		refused string
		summary string
	}{
		{"too-large", manifest("too-large", "one", ", requests: {cpu: 3}, limits: {cpu: 3}"), api.LimitRangeViolated, "maximum cpu usage per Container is 2", "LimitRange sizes allows no more than 2 of cpu, and container main has a limit of 3"},
		{"too-much-memory", manifest("too-much-memory", "one", ", limits: {memory: 5Gi}"), api.QuotaExceeded, "exceeded quota: gpus, requested: limits.memory=5Gi, used: limits.memory=0, limited: limits.memory=4Gi", "ResourceQuota gpus allows 4Gi of limits.memory: 0 used, 5Gi more needed"},
		{"too-many", manifest("too-many", "four", ""), api.QuotaExceeded, "", "ResourceQuota gpus allows 3 of gpu.deviceclass.resource.k8s.io/devices: 0 used, 4 more needed"},
		{"fine", manifest("fine", "one", ""), "", "", "The allocator picks a."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			path := filepath.Join(t.TempDir(), "pod.yaml")
			if err := os.WriteFile(path, []byte(test.pod), 0o600); err != nil {
				t.Fatal(err)
			}
			got := invoke(ctx, c.kubeconfig, "why", "-n", "team", "-f", path, "-o", "jsonpath={.verdict} {.code} {.summary}")
			want, code := "Fits "+test.summary, 0
			if test.code != "" {
				want, code = "Blocked "+string(test.code)+" "+test.summary, 1
			}
			if got.code != code || !strings.Contains(got.out, want) {
				t.Errorf("before: code %d, %q, want %d, %q %s", got.code, got.out, code, want, got.errOut)
			}
			object, err := parseObject([]byte(test.pod))
			if err != nil {
				t.Fatal(err)
			}
			err = c.create(ctx, "team", object)
			if test.refused != "" {
				if !apierrors.IsForbidden(err) && (err == nil || !strings.Contains(err.Error(), test.refused)) || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("the API server says %v, want %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if test.code == "" {
				if err := c.waitForClaims(ctx, "team", test.name); err != nil {
					t.Error(err)
				}
				return
			}
			c.blockedClaim(t, test.name, test.summary)
		})
	}
}

// blockedClaim waits for the controller to report that the quota refuses the claim,
// and asks about the pod live and from a file.
func (c *cluster) blockedClaim(t *testing.T, name, summary string) {
	t.Helper()
	ctx := t.Context()
	if err := poll(ctx, func() bool {
		events, err := c.kube.CoreV1().Events("team").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		return err == nil && len(events.Items) > 0 && strings.Contains(events.Items[0].Message, "exceeded quota: gpus, requested: gpu.deviceclass.resource.k8s.io/devices=4, used: gpu.deviceclass.resource.k8s.io/devices=0")
	}); err != nil {
		t.Fatalf("the controller reports no quota: %v", err)
	}
	a, err := why(t, c.kubeconfig, "team", name)
	if err != nil {
		t.Fatal(err)
	}
	if a.Verdict != api.Blocked || a.Code != api.QuotaExceeded || a.Stage != api.StageClaimGeneration || !strings.Contains(a.Summary, summary) {
		t.Errorf("%s %s in stage %s: %s", a.Verdict, a.Code, a.Stage, a.Summary)
	}
	a.checkForm(t)
	a.checkReplay(ctx, t)
}
