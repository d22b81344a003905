// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestResizedPods holds what a pod takes on its node against the sum that the
// scheduler makes with all that the status says.
func TestResizedPods(t *testing.T) {
	cpu := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
	}
	container := func(name, text string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: cpu(text)}}
	}
	status := func(name string, allocated, actuated corev1.ResourceList) corev1.ContainerStatus {
		s := corev1.ContainerStatus{Name: name, AllocatedResources: allocated}
		if actuated != nil {
			s.Resources = &corev1.ResourceRequirements{Requests: actuated}
		}
		return s
	}
	infeasible := []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	sidecar := container("sidecar", "1")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	for name, tc := range map[string]struct {
		statuses, inits []corev1.ContainerStatus
		conditions      []corev1.PodCondition
	}{
		"no status":              {},
		"as wanted":              {statuses: []corev1.ContainerStatus{status("a", cpu("2"), cpu("2000m")), status("b", cpu("4"), nil)}},
		"grows":                  {statuses: []corev1.ContainerStatus{status("a", cpu("1"), cpu("1"))}},
		"shrinks":                {statuses: []corev1.ContainerStatus{status("a", cpu("3"), cpu("3"))}},
		"allocated, not yet set": {statuses: []corev1.ContainerStatus{status("a", cpu("2"), cpu("5"))}},
		"infeasible":             {statuses: []corev1.ContainerStatus{status("a", cpu("1"), cpu("1"))}, conditions: infeasible},
		"infeasible, no status":  {conditions: infeasible},
		"sidecar shrinks":        {inits: []corev1.ContainerStatus{status("sidecar", cpu("7"), nil)}},
		"something else":         {statuses: []corev1.ContainerStatus{status("a", corev1.ResourceList{}, nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{container("init", "3"), sidecar},
					Containers:     []corev1.Container{container("a", "2"), container("b", "4")},
					Overhead:       cpu("250m"),
				},
				Status: corev1.PodStatus{ContainerStatuses: tc.statuses, InitContainerStatuses: tc.inits, Conditions: tc.conditions},
			}
			small := &corev1.Pod{Spec: corev1.PodSpec{Containers: pod.Spec.Containers[:1]}, Status: pod.Status}
			for _, pod := range []*corev1.Pod{pod, small} {
				want := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
				got := New(&snapshot.Snapshot{}).Gates.podRequests(pod, true)
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
