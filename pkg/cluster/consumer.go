// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// ConsumerKind returns the kind of a claim's consumer: "pod". The reference only has the
// name of the resource.
func ConsumerKind(c *resourceapi.ResourceClaimConsumerReference) string {
	return strings.TrimSuffix(c.Resource, "s")
}

// ConsumerName returns the name of a consumer of a claim: "pod/train-0".
func ConsumerName(c *resourceapi.ResourceClaimConsumerReference) string {
	return ConsumerKind(c) + "/" + c.Name
}

// ConsumerNames lists the consumers that a claim is reserved for, nil if there are none.
func ConsumerNames(claim *resourceapi.ResourceClaim) []string {
	var names []string
	for i := range claim.Status.ReservedFor {
		names = append(names, ConsumerName(&claim.Status.ReservedFor[i]))
	}
	return names
}
