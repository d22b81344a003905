// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
)

func TestConsumerNames(t *testing.T) {
	claim := &resourceapi.ResourceClaim{}
	if names := ConsumerNames(claim); names != nil {
		t.Errorf("a claim that is not reserved has the consumers %v", names)
	}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{
		{Resource: "pods", Name: "train-0"},
		{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang"},
	}
	if diff := gocmp.Diff([]string{"pod/train-0", "podgroup/gang"}, ConsumerNames(claim)); diff != "" {
		t.Error(diff)
	}
}
