// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// consumerState is the state of a consumer that a claim is reserved for.
type consumerState int

const (
	consumerUnknown consumerState = iota
	// consumerUses is a consumer that exists and has not ended.
	consumerUses
	// consumerFinished is a pod that does not run any more.
	consumerFinished
	// consumerReplaced is a consumer whose name another object has now.
	consumerReplaced
	consumerGone
)

// stale reports whether the resourceclaim controller should remove the consumer.
func (s consumerState) stale() bool { return s >= consumerFinished }

// consumer returns the state of a consumer of a claim, as syncClaim of the resourceclaim
// controller sees it.
func consumer(snap *snapshot.Snapshot, namespace string, c *resourceapi.ResourceClaimConsumerReference) consumerState {
	switch {
	case c.APIGroup == "" && c.Resource == "pods":
		pod := snap.Pod(namespace, c.Name)
		switch {
		case pod == nil && Hides(snap, snapshot.ResourcePods, namespace):
			return consumerUnknown
		case pod == nil:
			return consumerGone
		case pod.UID != c.UID:
			return consumerReplaced
		case snapshot.Finished(pod), pod.DeletionTimestamp != nil && pod.Spec.NodeName == "":
			return consumerFinished
		}
		return consumerUses
	case c.APIGroup == schedulingapi.GroupName && c.Resource == "podgroups":
		group := snap.PodGroup(namespace, c.Name)
		switch {
		case group == nil && Hides(snap, snapshot.ResourcePodGroups, namespace), len(snap.PodGroups) == 0:
			// A server that does not serve the groups leaves no gap.
			return consumerUnknown
		case group == nil:
			return consumerGone
		case group.UID != c.UID:
			return consumerReplaced
		}
		return consumerUses
	default:
		return consumerUnknown
	}
}

// consumerText names a consumer and its state.
func consumerText(snap *snapshot.Snapshot, namespace string, c *resourceapi.ResourceClaimConsumerReference) string {
	name := cluster.ConsumerName(c)
	switch consumer(snap, namespace, c) {
	case consumerUses:
		if pod := snap.Pod(namespace, c.Name); c.Resource == "pods" && pod != nil && pod.DeletionTimestamp != nil {
			return name + ", which is being deleted"
		}
		return name + ", which uses it"
	case consumerFinished:
		return name + ", which is finished"
	case consumerReplaced:
		return name + " of an earlier UID, which no longer exists"
	case consumerGone:
		return name + ", which no longer exists"
	default:
		return name
	}
}

// reservedForText lists consumers with their UIDs, for evidence.
func reservedForText(claim *resourceapi.ResourceClaim) string {
	if len(claim.Status.ReservedFor) == 0 {
		return "nobody"
	}
	list := make([]string, 0, len(claim.Status.ReservedFor))
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		list = append(list, fmt.Sprintf("%s (UID %s)", cluster.ConsumerName(c), c.UID))
	}
	return english.Sample(list, 3)
}
