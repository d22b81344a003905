// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestRefusedWorkloads has workloads of each kind whose pods are not created. Each is
// blocked with what the API server says, and its commands, pasted as they are, get a pod
// scheduled.
func TestRefusedWorkloads(t *testing.T) {
	c := startCluster(t, controlplane.Options{})
	const namespace = "refused"
	c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
	c.createAll(t, namespace, queueSlice(namespace, 8))
	c.createAll(t, namespace, `
apiVersion: v1
kind: ResourceQuota
metadata: {name: none}
spec: {hard: {pods: "0"}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [system-cluster-critical]}]}}
`)
	workload := func(kind, name, spec, pod string) string {
		apiVersion, selector := "apps/v1", "selector: {matchLabels: {app: "+name+"}}, "
		if kind == "Job" {
			apiVersion, selector, pod = "batch/v1", "", "restartPolicy: Never, "+pod
		}
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: {%s%stemplate: {metadata: {labels: {app: %s}}, spec: {%s%s}}}}",
			apiVersion, kind, name, selector, spec, name, pod, queuePodSpec)
	}
	tests := []struct {
		kind, name, spec, pod string
		code                  api.Code
		says                  string
	}{
		{"Deployment", "web", "", "priorityClassName: first, ", api.PodRefused, "no PriorityClass with name first was found"},
		{"StatefulSet", "set", "", "priorityClassName: second, ", api.PodRefused, "no PriorityClass with name second was found"},
		{"Job", "batch", "", "priorityClassName: third, ", api.PodRefused, "no PriorityClass with name third was found"},
		{"DaemonSet", "daemon", "", "priorityClassName: fourth, ", api.PodRefused, "no PriorityClass with name fourth was found"},
		{"ReplicaSet", "quota", "", "priorityClassName: system-cluster-critical, ", api.QuotaExceeded, "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0"},
		{"Deployment", "paused", "paused: true, ", "", api.NoPods, "is paused"},
		{"StatefulSet", "zero", "replicas: 0, ", "", api.NoPods, "is scaled to 0"},
		{"Job", "suspended", "suspend: true, ", "", api.NoPods, "is suspended"},
	}
	for i := range tests {
		test := &tests[i]
		c.createAll(t, namespace, workload(test.kind, test.name, test.spec, test.pod))
	}
	for i := range tests {
		test := &tests[i]
		t.Run(test.name, func(t *testing.T) {
			target := strings.ToLower(test.kind) + "/" + test.name
			var e api.Explanation
			if err := poll(t.Context(), func() bool {
				e = api.Explanation{}
				err := json.Unmarshal([]byte(c.whyText(t, target, "-n", namespace, "-o", "json").out), &e)
				return err == nil && e.Code == test.code && strings.Contains(e.Summary, test.says)
			}); err != nil {
				t.Fatalf("%s %s: %s, want %q", e.Verdict, e.Code, e.Summary, test.says)
			}
			if e.Verdict != api.Blocked {
				t.Errorf("it is %s", e.Verdict)
			}
			if test.code != api.NoPods {
				if row := c.whyText(t, "-n", namespace); !strings.Contains(row.out, target+" ") || row.code != 1 {
					t.Errorf("code %d, no line for %s in:\n%s", row.code, target, row.out)
				}
			}
			for _, step := range e.NextSteps {
				c.pasteAll(t, step.Commands)
			}
			if err := poll(t.Context(), func() bool {
				pods, err := c.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + test.name})
				return err == nil && len(pods.Items) > 0 && pods.Items[0].Spec.NodeName != ""
			}); err != nil {
				t.Errorf("no pod of it is scheduled after its commands: %v", err)
			}
		})
	}
}
