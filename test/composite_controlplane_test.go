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

// compositePods returns a CompositePodGroup with two gangs: one of three pods, which is
// decided first, and one of two. Each pod asks for a device.
func compositePods(minGroupCount int) string {
	text := fmt.Sprintf(`
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: training}
spec: {schedulingPolicy: {gang: {minGroupCount: %d}}, workloadRef: {workloadName: training, templateName: training}}`, minGroupCount)
	for _, group := range []struct {
		name string
		pods int
	}{{"first", 3}, {"second", 2}} {
		text += fmt.Sprintf(`
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: %[1]s}
spec: {parentCompositePodGroupName: training, schedulingPolicy: {gang: {minCount: %[2]d}}, workloadRef: {workloadName: training, templateName: %[1]s}}`, group.name, group.pods)
		for i := range group.pods {
			text += fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-%[2]d}
spec:
  schedulingGroup: {podGroupName: %[1]s}
  resourceClaims: [{name: gpus, resourceClaimTemplateName: one}]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]`, group.name, i)
		}
	}
	return text
}

// TestCompositesAgreeWithScheduler asks about groups that the scheduler places together,
// before they exist and after it has decided. There are four devices for five pods; with
// one more, all of them are scheduled.
func TestCompositesAgreeWithScheduler(t *testing.T) {
	c := startCluster(t, controlplane.Options{
		FeatureGates:  map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true, "CompositePodGroup": true},
		RuntimeConfig: map[string]bool{"scheduling.k8s.io/v1beta1": true, "scheduling.k8s.io/v1alpha3": true},
	})
	for _, test := range []struct {
		minGroupCount int
		// first is true if the first group is scheduled.
		first bool
	}{{2, false}, {1, true}} {
		t.Run(fmt.Sprint("minGroupCount-", test.minGroupCount), func(t *testing.T) {
			t.Parallel()
			ctx, namespace := t.Context(), fmt.Sprint("composite-", test.minGroupCount)
			c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
			c.createAll(t, namespace, queueSlice(namespace, 4))
			pods := compositePods(test.minGroupCount)
			file := filepath.Join(t.TempDir(), "groups.yaml")
			if err := os.WriteFile(file, []byte(pods), 0o600); err != nil {
				t.Fatal(err)
			}
			ask := func(group string, args ...string) *api.Explanation {
				t.Helper()
				got := c.whyText(t, append([]string{"podgroup/" + group, "-n", namespace, "-o", "json"}, args...)...)
				e := &api.Explanation{}
				if err := json.Unmarshal([]byte(got.out), e); err != nil || e.Members == nil || e.Members.Group == nil {
					t.Fatalf("code %d, %v\n%s%s", got.code, err, got.out, got.errOut)
				}
				return e
			}
			for group, fits := range map[string]bool{"first": test.first, "second": false} {
				e := ask(group, "-f", file)
				if e.Members.Group.Fits != fits || len(e.Members.Group.Composites) != 1 || e.Members.Group.Composites[0].Fit != 1 {
					t.Errorf("before, about %s: %s %s: %s; group %+v", group, e.Verdict, e.Code, e.Summary, e.Members.Group)
				}
				if (e.Verdict == api.Fits) != fits {
					t.Errorf("before, about %s: %s: %s", group, e.Verdict, e.Summary)
				}
			}
			c.createAll(t, namespace, pods)
			expect := func(group string, count int, want bool) {
				t.Helper()
				for i := range count {
					got := c.decision(ctx, namespace, fmt.Sprint(group, "-", i), func(d decision) bool { return !want && d.reason == unschedulable })
					if (got.reason == scheduled) != want {
						t.Fatalf("the scheduler says about %s-%d: %+v", group, i, got)
					}
				}
			}
			expect("first", 3, test.first)
			expect("second", 2, false)
			if e := ask("second"); e.Verdict != api.Blocked || e.Code != api.GangIncomplete || e.Members.Group.Fits {
				t.Errorf("after, about second: %s %s: %s; group %+v", e.Verdict, e.Code, e.Summary, e.Members.Group)
			}
			if e := ask("first"); !test.first && (e.Verdict != api.Blocked || e.Code != api.GangIncomplete || !strings.Contains(e.Summary, "1 of 2 groups of CompositePodGroup training fit")) {
				t.Errorf("after, about first: %s %s: %s; group %+v", e.Verdict, e.Code, e.Summary, e.Members.Group)
			}
			more := namespace + "-more"
			c.createAll(t, "", "apiVersion: v1\nkind: Node\nmetadata: {name: "+more+"}\n"+readyNode)
			c.createAll(t, "", strings.ReplaceAll(queueSlice(more, 1), more+".example.com", namespace+".example.com"))
			expect("first", 3, true)
			expect("second", 2, true)
		})
	}
}
