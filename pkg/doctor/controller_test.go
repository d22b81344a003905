// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// controller adds a pod of dra-controller.
func controller(name string, ready bool, changes ...func(*corev1.Pod)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		pod := tc.Pod(name)
		pod.Namespace = "kubectl-dra"
		pod.Labels = map[string]string{"app.kubernetes.io/name": "dra-controller", "app.kubernetes.io/part-of": "kubectl-dra"}
		if ready {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		} else {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "controller", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		}
		for _, change := range changes {
			change(pod)
		}
		s.Pods = append(s.Pods, pod)
	}
}

// TestControllerThatRuns expects no finding where one replica is ready, where the controller
// does not run at all, and about pods of others.
func TestControllerThatRuns(t *testing.T) {
	for name, pods := range map[string][]any{
		"none":        nil,
		"one":         {controller("a", true), controller("b", false)},
		"an old one":  {controller("a", false, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
		"of others":   {controller("a", false, func(p *corev1.Pod) { p.Labels["app.kubernetes.io/part-of"] = "driver" })},
		"not labeled": {controller("a", false, func(p *corev1.Pod) { p.Labels = nil })},
	} {
		found := diagnose(t, tc.Cluster(append(pods, tc.Nodes("n1"))...), Options{Choice: checks.Choice{Only: []string{"DRA1010"}}})
		if len(found.Findings) > 0 {
			t.Errorf("%s: %+v", name, found.Findings)
		}
	}
}
