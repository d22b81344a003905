// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const quotaCluster = `
apiVersion: v1
kind: Node
metadata: {name: a}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: gpu.example.com/card, selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a}
spec: {driver: gpu.example.com, nodeName: a, pool: {name: a, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}, {name: gpu-3}, {name: gpu-4}, {name: gpu-5}]}
`

// TestQuotaAgreesWithTheServer asks about pods that a quota of devices or claims is
// in the way of, under each of the keys that such a quota can have. The user, the
// resourceclaim controller or the scheduler, which has to create what is refused, has to
// be refused with the same numbers.
func TestQuotaAgreesWithTheServer(t *testing.T) {
	const (
		byUser       = "user"
		byController = "controller"
		byScheduler  = "scheduler"
	)
	claim := func(count int) string {
		return fmt.Sprintf("resourceClaims: [{name: gpu, resourceClaimTemplateName: take-%d}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]", count)
	}
	extended := func(name string, count int) string {
		return fmt.Sprintf("containers: [{name: main, image: example.com/none, resources: {limits: {%s: \"%d\"}}}]", name, count)
	}
	tests := []struct {
		name, key string
		hard      int
		pod       string
		// refused names the refused object, empty if the pod is scheduled.
		refused string
		needed  int
		stage   api.Stage
	}{
		{"by-class", "gpu.deviceclass.resource.k8s.io/devices", 1, claim(2), byController, 2, api.StageClaimGeneration},
		{"by-class-enough", "gpu.deviceclass.resource.k8s.io/devices", 2, claim(2), "", 0, ""},
		{"by-count", "count/resourceclaims.resource.k8s.io", 0, claim(1), byController, 1, api.StageClaimGeneration},
		{"by-extended-name", "requests.gpu.example.com/card", 1, claim(2), byController, 2, api.StageClaimGeneration},
		{"by-implicit-name", "requests.deviceclass.resource.kubernetes.io/gpu", 1, claim(2), byController, 2, api.StageClaimGeneration},
		{"pod-by-extended-name", "requests.gpu.example.com/card", 1, extended("gpu.example.com/card", 2), byUser, 2, api.StageAllocation},
		{"pod-by-implicit-name", "requests.deviceclass.resource.kubernetes.io/gpu", 1, extended("deviceclass.resource.kubernetes.io/gpu", 2), byUser, 2, api.StageAllocation},
		{"pod-by-extended-name-enough", "requests.gpu.example.com/card", 1, extended("gpu.example.com/card", 1), "", 0, ""},
		{"pod-by-class", "gpu.deviceclass.resource.k8s.io/devices", 1, extended("gpu.example.com/card", 2), byScheduler, 2, api.StageAllocation},
		{"pod-by-count", "count/resourceclaims.resource.k8s.io", 0, extended("gpu.example.com/card", 1), byScheduler, 1, api.StageAllocation},
	}
	c := startCluster(t, controlplane.Options{})
	c.createAll(t, "", quotaCluster)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			hard := fmt.Sprintf("{%s: %q}", test.key, fmt.Sprint(test.hard))
			c.createAll(t, test.name, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: cards}, spec: {hard: %[2]s}, status: {hard: %[2]s, used: {%[3]s: "0"}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: take-1}, spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: take-2}, spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2}}]}}}}`,
				test.name, hard, test.key))
			pod := fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: %s}, spec: {%s}}", test.name, test.pod)
			path := filepath.Join(t.TempDir(), "pod.yaml")
			mustDo(t, func() error { return os.WriteFile(path, []byte(pod), 0o600) })
			object, err := parseObject([]byte(pod))
			if err != nil {
				t.Fatal(err)
			}
			summary := fmt.Sprintf("ResourceQuota cards allows %d of %s: 0 used, %d more needed", test.hard, test.key, test.needed)
			want, code := string(api.Fits)+" ", 0
			if test.refused != "" {
				want, code = string(api.Blocked)+" "+string(api.QuotaExceeded)+" "+summary, 1
			}
			if got := c.whyText(t, "-f", path, "-o", "jsonpath={.verdict} {.code} {.summary}"); got.code != code || !strings.Contains(got.out, want) {
				t.Errorf("before: code %d, %q, want %d, %q %s", got.code, got.out, code, want, got.errOut)
			}
			said := fmt.Sprintf("exceeded quota: cards, requested: %[1]s=%[2]d, used: %[1]s=0, limited: %[1]s=%[3]d", test.key, test.needed, test.hard)
			err = c.create(ctx, test.name, object)
			if test.refused == byUser {
				if err == nil || !strings.Contains(err.Error(), said) {
					t.Errorf("the API server says %v, want %q", err, said)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if test.refused == "" {
				if got := c.decision(ctx, test.name, "p", func(d decision) bool { return d.reason == scheduled }); got.reason != scheduled {
					t.Errorf("the scheduler says %+v", got)
				}
				return
			}
			reason := map[string]string{byController: "FailedResourceClaimCreation", byScheduler: "FailedScheduling"}[test.refused]
			if err := poll(ctx, func() bool {
				events, err := c.kube.CoreV1().Events(test.name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=p,reason=" + reason})
				return err == nil && strings.Contains(fmt.Sprint(messages(events)), said)
			}); err != nil {
				t.Fatalf("the %s reports nothing like %q", test.refused, said)
			}
			got := c.whyText(t, "pod/p", "-n", test.name, "-o", "jsonpath={.verdict} {.code} {.stage} {.summary}")
			if want := fmt.Sprintf("%s %s %s %s", api.Blocked, api.QuotaExceeded, test.stage, summary); got.code != 1 || !strings.Contains(got.out, want) {
				t.Errorf("live: code %d, %q, want %q %s", got.code, got.out, want, got.errOut)
			}
		})
	}
}

// messages returns the messages of events.
func messages(events *corev1.EventList) []string {
	var list []string
	for i := range events.Items {
		list = append(list, events.Items[i].Message)
	}
	return list
}
