// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestOverGivesDefaults applies a pod and a Deployment without requests where a LimitRange
// has a default. What exists, or says so itself, keeps its own.
func TestOverGivesDefaults(t *testing.T) {
	memory := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)}
	}
	spec := func(requests corev1.ResourceList) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}}
	}
	pod := func(namespace, name string, requests corev1.ResourceList) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec(requests)}
	}
	given := &Manifests{Objects: &snapshot.Snapshot{
		Pods:      []*corev1.Pod{pod("ml", "none", nil), pod("ml", "own", memory("1Gi")), pod("ml", "there", nil), pod("other", "none", nil)},
		Workloads: []*snapshot.Workload{{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}, Template: corev1.PodTemplateSpec{Spec: spec(nil)}}},
	}}
	cluster := &snapshot.Snapshot{
		Pods: []*corev1.Pod{pod("ml", "there", nil)},
		LimitRanges: []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, DefaultRequest: memory("8Gi")},
		}}}},
	}
	applied := given.Over(cluster)
	for name, want := range map[string]string{"ml/none": "8Gi", "ml/own": "1Gi", "ml/there": "0", "other/none": "0"} {
		for _, p := range applied.Pods {
			if got := p.Spec.Containers[0].Resources.Requests.Memory().String(); p.Namespace+"/"+p.Name == name && got != want {
				t.Errorf("pod %s requests %s, want %s", name, got, want)
			}
		}
	}
	if got := applied.Workloads[0].Template.Spec.Containers[0].Resources.Requests.Memory().String(); got != "8Gi" {
		t.Errorf("the pods of the Deployment request %s", got)
	}
	if len(given.Objects.Pods[0].Spec.Containers[0].Resources.Requests)+len(given.Objects.Workloads[0].Template.Spec.Containers[0].Resources.Requests) > 0 {
		t.Error("the manifests were changed")
	}
}
