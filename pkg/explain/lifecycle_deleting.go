// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// deletingTarget settles the matter for a claim that is being deleted: nobody
// who does not use it already can. What its deletion waits for is a finding.
func (x *inquiry) deletingTarget() bool {
	if x.subject.pod != nil || x.subject.target.Kind != api.KindClaim {
		return false
	}
	claim := x.subject.claims[0].Claim
	if claim.DeletionTimestamp == nil {
		return false
	}
	text := fmt.Sprintf("ResourceClaim %s %s", qualifiedName(claim), allocator.ErrClaimDeleting)
	if claim.Status.Allocation == nil {
		x.settle(api.Blocked, api.ClaimNotReady, text)
	} else {
		x.out.Verdict, x.out.Code, x.out.Summary = api.Blocked, api.ClaimNotReady, text
	}
	return true
}

// deletingClaim tells what keeps a claim that is being deleted: its consumers,
// finalizers of others, and then the resourceclaim controller, which deallocates
// it and removes its own finalizer when no consumer is left.
func (x *inquiry) deletingClaim(claim *resourceapi.ResourceClaim) finding {
	f := finding{instead: true, reason: fmt.Sprintf("claim %s has been terminating for %s", claim.Name, x.elapsed(claim.DeletionTimestamp.Time))}
	f.prove(whatif.ClaimObject(claim), "metadata.deletionTimestamp", claim.DeletionTimestamp.UTC().Format(time.RFC3339), "")
	if len(claim.Finalizers) > 0 {
		f.prove(whatif.ClaimObject(claim), "metadata.finalizers", english.JoinAnd(claim.Finalizers), "none")
	}
	others := slices.DeleteFunc(slices.Clone(claim.Finalizers), func(name string) bool { return name == resourceapi.Finalizer })
	var waits, using []string
	stale := 0
	var since time.Time
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		waits = append(waits, x.consumerText(claim.Namespace, c))
		switch state := x.consumer(claim.Namespace, c); {
		case state.stale():
			stale++
			since = earlier(since, x.consumerEnd(claim.Namespace, c))
		case state == consumerUses:
			using = append(using, consumerName(c))
		}
	}
	if len(waits) > 0 {
		f.prove(whatif.ClaimObject(claim), "status.reservedFor", reservedForText(claim), "nobody")
	}
	if len(others) > 0 {
		waits = append(waits, "the owner of the finalizer "+english.JoinAnd(others)+" to remove it")
	}
	own := len(others) < len(claim.Finalizers)
	switch {
	case len(waits) > 0:
		f.reason += ": it waits for " + strings.Join(waits[:min(len(waits), 3)], ", and for ")
		if more := len(waits) - 3; more > 0 {
			f.reason += fmt.Sprintf(", and for %d more", more)
		}
		if own {
			f.step(api.ActorNobody, "when no consumer is left, the resourceclaim controller deallocates claim %s and removes the finalizer %s", claim.Name, resourceapi.Finalizer)
		}
	case own:
		f.reason += ": it waits for the resourceclaim controller to remove the finalizer " + resourceapi.Finalizer
	}
	if len(using) > 0 {
		kept := ""
		if len(others) > 0 {
			kept = " and the finalizer " + english.JoinAnd(others) + " is removed"
		}
		f.step(api.ActorUser, "claim %s is removed when no pod uses it%s: delete %s", claim.Name, kept, english.Sample(using, 3))
	}
	if len(others) > 0 {
		f.step(api.ActorAdmin, "the finalizer %s keeps claim %s, even when no pod uses it: its owner has to remove it; check that the owner runs", english.JoinAnd(others), claim.Name)
	}
	switch {
	case stale > 0:
		x.blameController(&f, since)
	case len(waits) == 0 && own:
		x.blameController(&f, claim.DeletionTimestamp.Time)
	}
	return f
}
