// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// DeletingClaim says why a claim that is being deleted still exists: its consumers,
// finalizers of others, and then the resourceclaim controller, which deallocates it and
// removes its own finalizer when no consumer is left.
func DeletingClaim(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) Finding {
	f := Finding{Instead: true, Reason: fmt.Sprintf("claim %s has been terminating %s", claim.Name, snap.Lasting("for", claim.DeletionTimestamp.Time))}
	f.AddEvidence(api.RefTo(api.KindClaim, claim), "metadata.deletionTimestamp", claim.DeletionTimestamp.UTC().Format(time.RFC3339), "")
	if len(claim.Finalizers) > 0 {
		f.AddEvidence(api.RefTo(api.KindClaim, claim), "metadata.finalizers", english.JoinAnd(claim.Finalizers), "none")
	}
	others := slices.DeleteFunc(slices.Clone(claim.Finalizers), func(name string) bool { return name == resourceapi.Finalizer })
	var waits, using []string
	stale := 0
	var since time.Time
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		waits = append(waits, consumerText(snap, claim.Namespace, c))
		switch state := consumer(snap, claim.Namespace, c); {
		case state.stale():
			stale++
			since = earlier(since, consumerEnd(snap, claim.Namespace, c))
		case state == consumerUses:
			using = append(using, cluster.ConsumerName(c))
		}
	}
	if len(waits) > 0 {
		f.AddEvidence(api.RefTo(api.KindClaim, claim), "status.reservedFor", reservedForText(claim), "nobody")
	}
	if len(others) > 0 {
		waits = append(waits, "the owner of the finalizer "+english.JoinAnd(others)+" to remove it")
	}
	own := len(others) < len(claim.Finalizers)
	switch {
	case len(waits) > 0:
		f.Reason += ": it waits for " + strings.Join(waits[:min(len(waits), 3)], ", and for ")
		if more := len(waits) - 3; more > 0 {
			f.Reason += fmt.Sprintf(", and for %d more", more)
		}
		if own {
			f.Step(api.ActorNobody, "when no consumer is left, the resourceclaim controller deallocates claim %s and removes the finalizer %s", claim.Name, resourceapi.Finalizer)
		}
	case own:
		f.Reason += ": it waits for the resourceclaim controller to remove the finalizer " + resourceapi.Finalizer
	}
	if len(using) > 0 {
		kept := ""
		if len(others) > 0 {
			kept = " and the finalizer " + english.JoinAnd(others) + " is removed"
		}
		f.Step(api.ActorUser, "claim %s is removed when no pod uses it%s: until it ends, %s keeps the devices", claim.Name, kept, english.Sample(using, 3))
	}
	if len(others) > 0 {
		f.Step(api.ActorAdmin, "the finalizer %s keeps claim %s, even when no pod uses it: its owner has to remove it; check that the owner runs", english.JoinAnd(others), claim.Name)
	}
	switch {
	case stale > 0:
		blameController(snap, &f, since)
	case len(waits) == 0 && own:
		blameController(snap, &f, claim.DeletionTimestamp.Time)
	}
	return f
}

// blameController says who removes stale reservations, and that this takes too long. Where
// it is not known since when it could, only time can tell.
func blameController(snap *snapshot.Snapshot, f *Finding, since time.Time) {
	if Overdue(snap, since) {
		f.Step(api.ActorAdmin, "check that kube-controller-manager runs: its resourceclaim controller should have removed the reservation")
		return
	}
	f.Step(api.ActorNobody, "the resourceclaim controller removes the reservation, usually within a minute; if it does not, check that kube-controller-manager runs")
}

// lastEnd returns when the last container of a pod ended, zero if unknown.
func lastEnd(pod *corev1.Pod) time.Time {
	var end time.Time
	for _, status := range containerStatuses(pod) {
		if t := status.State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	return end
}

// consumerEnd returns the latest time since when a consumer is stale, zero if unknown:
// nobody records when a pod was deleted.
func consumerEnd(snap *snapshot.Snapshot, namespace string, c *resourceapi.ResourceClaimConsumerReference) time.Time {
	pod := snap.Pod(namespace, c.Name)
	switch {
	case c.Resource != "pods" || pod == nil:
		return time.Time{}
	case pod.UID != c.UID:
		// The earlier pod was gone before this one was created.
		return pod.CreationTimestamp.Time
	case snapshot.Finished(pod):
		return lastEnd(pod)
	default:
		return pod.DeletionTimestamp.Time
	}
}

// earlier returns the earlier of two times, of which zero is unknown.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

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
