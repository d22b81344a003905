// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// ConsumerKind returns the kind of a claim's consumer as messages have it: "pod". The
// reference only has the name of the resource.
func ConsumerKind(c *resourceapi.ResourceClaimConsumerReference) string {
	return strings.TrimSuffix(c.Resource, "s")
}

// ConsumerName returns the name of a consumer of a claim: "pod/train-0".
func ConsumerName(c *resourceapi.ResourceClaimConsumerReference) string {
	return ConsumerKind(c) + "/" + c.Name
}

// Consumers lists the consumers that a claim is reserved for, nil if there are none.
func Consumers(claim *resourceapi.ResourceClaim) []api.ObjectRef {
	var consumers []api.ObjectRef
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		kind := ConsumerKind(c)
		switch c.Resource {
		case "pods":
			kind = api.KindPod
		case "podgroups":
			kind = api.KindPodGroup
		}
		consumers = append(consumers, api.Ref(kind, claim.Namespace, c.Name).In(c.APIGroup))
	}
	return consumers
}
