// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func TestConsumers(t *testing.T) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml"}}
	if consumers := Consumers(claim); consumers != nil {
		t.Errorf("a claim that is not reserved has the consumers %v", consumers)
	}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{
		{Resource: "pods", Name: "train-0"},
		{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang"},
		{APIGroup: "example.com", Resource: "gizmos", Name: "one"},
	}
	if diff := gocmp.Diff([]api.ObjectRef{
		api.Ref("Pod", "ml", "train-0"),
		api.Ref("PodGroup", "ml", "gang"),
		api.Ref("gizmo", "ml", "one").In("example.com"),
	}, Consumers(claim)); diff != "" {
		t.Error(diff)
	}
}
