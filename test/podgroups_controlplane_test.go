// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// sharingPods returns a gang of three pods that share a device and, if own is set, have one
// each besides.
func sharingPods(version string, own bool) string {
	text := fmt.Sprintf(`
apiVersion: scheduling.k8s.io/%s
kind: PodGroup
metadata: {name: workers}
spec:
  schedulingPolicy: {gang: {minCount: 3}}
  resourceClaims: [{name: shared, resourceClaimTemplateName: one}]`, version)
	more, use := "", ""
	if own {
		more, use = ", {name: own, resourceClaimTemplateName: one}", ", {name: own}"
	}
	for i := range 3 {
		text += fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: worker-%d}
spec:
  schedulingGroup: {podGroupName: workers}
  resourceClaims: [{name: shared, resourceClaimTemplateName: one}%s]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: shared}%s]}}]`, i, more, use)
	}
	return text
}

// whyPodGroup returns the answer about the PodGroup workers.
func (c *cluster) whyPodGroup(t *testing.T, namespace string, args ...string) *api.Explanation {
	t.Helper()
	got := c.whyText(t, append([]string{"podgroup/workers", "-n", namespace, "-o", "json"}, args...)...)
	e := &api.Explanation{}
	if err := json.Unmarshal([]byte(got.out), e); err != nil {
		t.Fatalf("code %d, %v\n%s", got.code, err, got.errOut)
	}
	if e.Members == nil || e.Members.Group == nil {
		t.Fatalf("%s %s: %s; members %+v", e.Verdict, e.Code, e.Summary, e.Members)
	}
	return e
}

// TestSharedClaimsAgreeWithScheduler asks about gangs that share a claim before they
// exist, and again after the scheduler has decided. There are two nodes with two devices
// each.
func TestSharedClaimsAgreeWithScheduler(t *testing.T) {
	c := startCluster(t, controlplane.Options{
		FeatureGates:  map[string]bool{"GenericWorkload": true, "DRAWorkloadResourceClaims": true},
		RuntimeConfig: map[string]bool{"scheduling.k8s.io/v1beta1": true, "scheduling.k8s.io/v1alpha3": true},
	})
	for _, test := range []struct {
		name string
		own  bool
		// fit is how many of the pods fit together.
		fit int
	}{
		{name: "all", fit: 3},
		{name: "own", own: true, fit: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, namespace := t.Context(), "sharing-"+test.name
			second := namespace + "-2"
			c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
			c.createAll(t, "", "apiVersion: v1\nkind: Node\nmetadata: {name: "+second+"}\n"+readyNode)
			c.createAll(t, namespace, queueSlice(namespace, 2))
			c.createAll(t, "", strings.ReplaceAll(queueSlice(second, 2), second+".example.com", namespace+".example.com"))
			pods := sharingPods("v1beta1", test.own)
			file := filepath.Join(t.TempDir(), "gang.yaml")
			if err := os.WriteFile(file, []byte(pods), 0o600); err != nil {
				t.Fatal(err)
			}
			if e := c.whyPodGroup(t, namespace, "-f", file); e.Members.Group.Fit != test.fit || e.Members.Group.Fits != (test.fit == 3) {
				t.Errorf("before: %s %s: %s; group %+v", e.Verdict, e.Code, e.Summary, e.Members.Group)
			}
			c.createAll(t, namespace, pods)
			nodes := map[string]bool{}
			for i := range 3 {
				got := c.decision(ctx, namespace, fmt.Sprint("worker-", i), func(d decision) bool { return test.fit < 3 && d.reason == unschedulable })
				if (got.reason == scheduled) != (test.fit == 3) {
					t.Fatalf("the scheduler says about worker-%d: %+v", i, got)
				}
				nodes[got.node] = true
			}
			if len(nodes) != 1 {
				t.Errorf("the pods are on several nodes: %v", nodes)
			}
			e := c.whyPodGroup(t, namespace)
			if got := e.Members.Group; got.Fit != test.fit {
				t.Errorf("after: %s %s: %s; group %+v", e.Verdict, e.Code, e.Summary, got)
			}
			if got := c.whyText(t, "podgroup/worker", "-n", namespace); got.code == 0 || !strings.Contains(got.errOut, "PodGroup "+namespace+"/worker: not found") || !strings.Contains(got.errOut, "did you mean workers?") {
				t.Errorf("a PodGroup that does not exist: code %d, %s", got.code, got.errOut)
			}
		})
	}
}

// TestPodGroupsOfServedVersions asks servers that serve one version of PodGroups only.
// There is no scheduler: that of 1.37 needs v1beta1.
func TestPodGroupsOfServedVersions(t *testing.T) {
	for _, version := range []string{"v1alpha3", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			served := map[string]bool{"scheduling.k8s.io/v1alpha3": false, "scheduling.k8s.io/v1beta1": false}
			served["scheduling.k8s.io/"+version] = true
			c := startCluster(t, controlplane.Options{
				FeatureGates:     map[string]bool{"GenericWorkload": true, "DRAWorkloadResourceClaims": true},
				RuntimeConfig:    served,
				WithoutScheduler: true, WithoutControllerManager: true,
			})
			const namespace = "served"
			c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
			c.createAll(t, namespace, queueSlice(namespace, 2))
			c.createAll(t, namespace, sharingPods(version, true))
			e := c.whyPodGroup(t, namespace)
			if e.Members.Group.Fit != 1 || e.Members.Group.MinCount == nil || *e.Members.Group.MinCount != 3 || e.Members.Waiting != 3 {
				t.Errorf("%s %s: %s; members %+v, group %+v", e.Verdict, e.Code, e.Summary, e.Members, e.Members.Group)
			}
		})
	}
}
