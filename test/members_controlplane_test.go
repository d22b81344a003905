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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// gangCase is a PodGroup of three pods, all of which it needs, that does not fit on a
// node, and what makes it fit.
type gangCase struct {
	name string
	// devices are the devices of the node, each the devices that a pod asks for.
	devices, each int
	// fit is how many of the pods fit.
	fit int
	// change begins the remedy whose commands are pasted, empty if nodes are added as
	// the prospect says.
	change string
	// scheduled is how many pods are scheduled then.
	scheduled int
}

// gangPods returns the PodGroup, its template and its pods.
func gangPods(namespace string, each int) string {
	text := fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: %s, count: %d}}]}}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: workers}
spec: {schedulingPolicy: {gang: {minCount: 3}}}`, namespace, each)
	for i := range 3 {
		text += fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: worker-%d}
spec:
  schedulingGroup: {podGroupName: workers}
  resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]`, i)
	}
	return text
}

// TestGangsAgreeWithScheduler asks about gangs that the scheduler does not place, does
// what the answer says, and lets the scheduler decide again.
func TestGangsAgreeWithScheduler(t *testing.T) {
	c := startCluster(t, controlplane.Options{
		FeatureGates:  map[string]bool{"GenericWorkload": true},
		RuntimeConfig: map[string]bool{"scheduling.k8s.io/v1beta1": true, "scheduling.k8s.io/v1alpha3": true},
	})
	for _, test := range []gangCase{
		{name: "fewer", devices: 4, each: 2, fit: 2, change: "request 1 device instead of 2", scheduled: 3},
		{name: "nodes", devices: 1, each: 1, fit: 1, scheduled: 3},
		{name: "smaller", devices: 2, each: 1, fit: 2, change: "lower minCount of PodGroup workers to 2", scheduled: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c.runGang(t, &test)
		})
	}
	for name, test := range map[string]struct {
		pods        int
		class, says string
	}{
		"priority":          {3, "value: 7", "priority as the pod group's priority"},
		"preemption-policy": {1, "value: 0, preemptionPolicy: Never", "preemption policy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.runDifferingGang(t, name, test.pods, test.class, test.says)
		})
	}
}

// runDifferingGang creates a gang of which so many pods have a PriorityClass, which neither
// the other pods nor the PodGroup have. They are recreated without.
func (c *cluster) runDifferingGang(t *testing.T, name string, pods int, class, says string) {
	ctx, namespace := t.Context(), "gang-"+name
	c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
	c.createAll(t, namespace, queueSlice(namespace, 3))
	c.createAll(t, "", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: "+name+"}, "+class+"}")
	parts := strings.Split(gangPods(namespace, 1), "\n---\n")
	different := slices.Clone(parts)
	for i := len(parts) - pods; i < len(parts); i++ {
		different[i] += "\n  priorityClassName: " + name
	}
	c.createAll(t, namespace, strings.Join(different, "\n---\n"))
	if got := c.decision(ctx, namespace, "worker-0", func(d decision) bool { return d.reason != "" }); got.reason != corev1.PodReasonSchedulerError || !strings.Contains(got.message, "pods in a single pod group should have the same "+says) {
		t.Fatalf("the scheduler says about the first pod: %+v", got)
	}
	for _, target := range []string{"podgroup/workers", "pod/worker-0"} {
		got := c.whyText(t, target, "-n", namespace, "-o", "json")
		var e api.Explanation
		if err := json.Unmarshal([]byte(got.out), &e); err != nil || got.code != 1 {
			t.Fatalf("code %d, %v\n%s", got.code, err, got.errOut)
		}
		if e.Verdict != api.Blocked || e.Code != api.PodGroupMismatch || e.Stage != api.StageQueueing || len(e.NextSteps) == 0 {
			t.Errorf("%s: %s %s in %s: %s", target, e.Verdict, e.Code, e.Stage, e.Summary)
		}
	}
	for i := range 3 {
		pod := fmt.Sprint("worker-", i)
		mustDo(t, func() error { return c.kube.CoreV1().Pods(namespace).Delete(ctx, pod, *metav1.NewDeleteOptions(0)) })
	}
	c.createAll(t, namespace, strings.Join(parts[2:], "\n---\n"))
	for i := range 3 {
		if got := c.decision(ctx, namespace, fmt.Sprint("worker-", i), func(decision) bool { return false }); got.reason != scheduled {
			t.Errorf("recreated without it, worker-%d: %+v", i, got)
		}
	}
}

// TestScaledWorkloadsAgreeWithScheduler asks about workloads of three pods for two
// devices, and pastes the command that makes them two.
func TestScaledWorkloadsAgreeWithScheduler(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithControllers: []string{"statefulset-controller"}})
	template := "{metadata: {labels: {app: w}}, spec: {" + queuePodSpec
	selecting := "selector: {matchLabels: {app: w}}, template: " + template + "}}}"
	for kind, manifest := range map[string]string{
		"Deployment":  "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 3, " + selecting + "}",
		"StatefulSet": "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: w}, spec: {replicas: 3, serviceName: w, podManagementPolicy: Parallel, " + selecting + "}",
		"Job":         "{apiVersion: batch/v1, kind: Job, metadata: {name: w}, spec: {backoffLimit: 0, parallelism: 3, completions: 3, template: " + template + ", restartPolicy: Never}}}}",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ctx, namespace := t.Context(), "scale-"+strings.ToLower(kind)
			c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
			c.createAll(t, namespace, queueSlice(namespace, 2))
			c.createAll(t, namespace, manifest)
			// reached waits for a number of pods, and for how many of them have a node. No
			// kubelet ends the pods that are deleted on a node, so this does: a StatefulSet
			// deletes the pod with the highest number, whether or not it has a device.
			reached := func(wantPods, wantPlaced int) {
				t.Helper()
				ctx, stop := context.WithTimeout(ctx, 30*time.Second)
				defer stop()
				pods, placed := 0, 0
				if err := poll(ctx, func() bool {
					list, err := c.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
					if err != nil {
						return false
					}
					pods, placed = 0, 0
					for _, pod := range list.Items {
						switch {
						case pod.DeletionTimestamp != nil:
							_ = c.kube.CoreV1().Pods(namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
							continue
						case pod.Spec.NodeName != "":
							placed++
						}
						pods++
					}
					return pods == wantPods && placed == wantPlaced
				}); err != nil {
					t.Fatalf("%d pods, %d of them on nodes, want %d and %d: %v", pods, placed, wantPods, wantPlaced, err)
				}
			}
			reached(3, 2)
			ask := func() (e api.Explanation, scaling int) {
				got := c.whyText(t, strings.ToLower(kind)+"/w", "-n", namespace, "-o", "json")
				if err := json.Unmarshal([]byte(got.out), &e); err != nil {
					t.Fatalf("code %d, %v\n%s", got.code, err, got.errOut)
				}
				return e, slices.IndexFunc(e.Remedies, func(r api.Remedy) bool {
					return len(r.Edits) == 1 && (r.Edits[0].Path == "/spec/replicas" || r.Edits[0].Path == "/spec/parallelism")
				})
			}
			if kind == "Deployment" {
				c.createAll(t, namespace, "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: hpa}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}}}")
				if e, at := ask(); at >= 0 || !slices.ContainsFunc(e.Hints, func(h api.Hint) bool { return strings.HasPrefix(h.Text, "HorizontalPodAutoscaler hpa sets") }) {
					t.Errorf("with a HorizontalPodAutoscaler: remedies %+v, hints %+v", e.Remedies, e.Hints)
				}
				mustDo(t, func() error {
					return c.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Delete(ctx, "hpa", metav1.DeleteOptions{})
				})
			}
			e, at := ask()
			if at < 0 {
				t.Fatalf("%s: no remedy with fewer pods: %+v; members %+v", e.Summary, e.Remedies, e.Members)
			}
			c.pasteAll(t, e.Remedies[at].Commands)
			reached(2, 2)
		})
	}
}

func (c *cluster) runGang(t *testing.T, test *gangCase) {
	ctx, namespace := t.Context(), "gang-"+test.name
	c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
	c.createAll(t, namespace, queueSlice(namespace, test.devices))
	c.createAll(t, namespace, gangPods(namespace, test.each))
	if got := c.decision(ctx, namespace, "worker-0", func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Fatalf("the scheduler says about the first pod: %+v", got)
	}
	got := c.whyText(t, "podgroup/workers", "-n", namespace, "-o", "json")
	var e api.Explanation
	if err := json.Unmarshal([]byte(got.out), &e); err != nil {
		t.Fatalf("code %d, %v\n%s", got.code, err, got.errOut)
	}
	if e.Verdict != api.Blocked || e.Code != api.GangIncomplete || e.Members == nil || e.Members.Group == nil || e.Members.Group.Fits || e.Members.Group.Fit != test.fit {
		t.Fatalf("%s %s: %s; members %+v", e.Verdict, e.Code, e.Summary, e.Members)
	}
	if test.change == "" {
		at := slices.IndexFunc(e.Members.Prospects, func(p api.MemberProspect) bool { return p.Condition == api.MoreNodes && p.Verdict == api.Fits })
		if at < 0 {
			t.Fatalf("no number of nodes is said to be enough: %+v", e.Members.Prospects)
		}
		for i := range e.Members.Prospects[at].NodeCount {
			more := fmt.Sprintf("%s-%d", namespace, i)
			c.createAll(t, "", "apiVersion: v1\nkind: Node\nmetadata: {name: "+more+"}\n"+readyNode)
			c.createAll(t, "", strings.ReplaceAll(queueSlice(more, test.devices), more+".example.com", namespace+".example.com"))
		}
	} else {
		at := slices.IndexFunc(e.Remedies, func(r api.Remedy) bool { return strings.HasPrefix(r.Change, test.change) })
		if at < 0 {
			t.Fatalf("no remedy %q: %+v", test.change, e.Remedies)
		}
		c.pasteAll(t, e.Remedies[at].Commands)
	}
	count := 0
	for i := range 3 {
		name := fmt.Sprint("worker-", i)
		got := c.decision(ctx, namespace, name, func(d decision) bool {
			return d.reason == scheduled || i >= test.scheduled && d.reason == unschedulable
		})
		if got.reason == scheduled {
			count++
		}
	}
	if count != test.scheduled {
		t.Errorf("%d pods are scheduled then, want %d", count, test.scheduled)
	}
}
