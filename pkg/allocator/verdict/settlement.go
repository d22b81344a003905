// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Settlement is an answer that is found before any node is tried.
type Settlement struct {
	Cause   Cause
	Outcome api.Verdict
	Code    api.Code
	// Nodeless is set if no node is looked for: the devices are allocated, or are not needed any
	// more, because the pods have finished.
	Nodeless, Finished bool

	// Problems are the problems of the claims, Claim is the first claim that has one.
	Problems []error
	Claim    *cluster.PodClaim
	// Requests are the requests that cannot be served, and Classes the classes that they
	// need.
	Requests, Classes []string
	// Gap is the gap in the snapshot.
	Gap *snapshot.Gap
	// Resource is an extended resource.
	Resource corev1.ResourceName
}

// Refused reports whether the claims are refused, as changes of them can mend.
func (s *Settlement) Refused() bool {
	return slices.Contains([]Cause{AdminAccessDenied, AlternativesDisabled, RequestUnknown, ClassMissing, ClassUnread}, s.Cause)
}

// Cause settles a question before any node is tried.
type Cause string

// The causes.
const (
	JobEnded    Cause = "JobEnded"    // needs no devices any more
	PodFinished Cause = "PodFinished" // needs no devices any more
	PodDeleting Cause = "PodDeleting" // gets no devices

	NotAllocated Cause = "NotAllocated" // a pod is bound without devices
	HasDevices   Cause = "HasDevices"   // all claims are allocated
	NoPods       Cause = "NoPods"       // an object has created no pods, as far as is known

	ClaimProblem  Cause = "ClaimProblem"  // the scheduler does not even look at a claim
	ClaimFull     Cause = "ClaimFull"     // a claim has too many consumers
	ClaimDeleting Cause = "ClaimDeleting" // a claim is being deleted

	Unserved             Cause = "Unserved"             // nothing offers an extended resource
	AdminAccessDenied    Cause = "AdminAccessDenied"    // a namespace does not allow admin access
	AlternativesDisabled Cause = "AlternativesDisabled" // a feature gate is off
	RequestUnknown       Cause = "RequestUnknown"       // a request is of an unknown kind
	ClassMissing         Cause = "ClassMissing"         // DeviceClasses do not exist
	ClassUnread          Cause = "ClassUnread"          // a DeviceClass could not be read
)

// settlement returns what settles the question about a target before any node is tried, nil if
// nothing does. The first one to say something wins.
func settlement(q *eligibility.Question, t *target.Target) *Settlement {
	for _, find := range []func(*eligibility.Question, *target.Target) *Settlement{
		withoutPods,
		beyondScheduling,
		func(q *eligibility.Question, _ *target.Target) *Settlement { return claimProblem(q) },
		deletingTarget,
		unservedPod,
		nothingToAllocate,
	} {
		if s := find(q, t); s != nil {
			return s
		}
	}
	return nil
}

// withoutPods settles the question about an object without pods whose future pods are not
// known.
func withoutPods(q *eligibility.Question, t *target.Target) *Settlement {
	if q.Pod != nil || t.Creator == nil {
		return nil
	}
	if life := lifecycle.OfCreator(q.Cluster.Snapshot, t.Creator); life.Blocked != nil {
		return &Settlement{Cause: NoPods, Outcome: api.Blocked, Code: life.Blocked.Code, Nodeless: true}
	}
	s := &Settlement{Cause: NoPods, Outcome: api.Undetermined, Code: api.NoPods, Nodeless: true}
	if at := slices.IndexFunc(q.Cluster.Snapshot.Gaps, func(gap snapshot.Gap) bool {
		return gap.Resource == snapshot.ResourcePods || target.MayOwnPods(gap.Resource)
	}); at >= 0 {
		s.Gap = &q.Cluster.Snapshot.Gaps[at]
	}
	return s
}

// beyondScheduling deals with pods that the scheduler has done with: those that are bound,
// finished or on their way out.
func beyondScheduling(q *eligibility.Question, t *target.Target) *Settlement {
	pod := q.Pod
	if t.End != nil {
		return &Settlement{Cause: JobEnded, Outcome: api.Allocated, Nodeless: true, Finished: true}
	}
	if pod == nil {
		return nil
	}
	switch {
	case snapshot.Finished(pod):
		return &Settlement{Cause: PodFinished, Outcome: api.Allocated, Nodeless: true, Finished: true}
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil:
		return &Settlement{Cause: PodDeleting, Outcome: api.Error, Code: api.ClaimNotReady}
	case pod.Spec.NodeName == "", t.IsElsewhere(pod):
		return nil
	default:
		return boundPod(q)
	}
}

// boundPod deals with a pod on its node: nobody allocates claims for it any more, and the kubelet
// refuses those that are not the pod's.
func boundPod(q *eligibility.Question) *Settlement {
	var tolerable []error
	var missing, unreadable error
	for i := range q.PodClaims {
		pc := &q.PodClaims[i]
		switch {
		case pc.ExtendedResources && pc.Generated && lifecycle.Hides(q.Cluster.Snapshot, snapshot.ResourceClaims, q.Pod.Namespace):
			unreadable = fmt.Errorf("the claim for the extended resources of the pod %w", cluster.ErrClaimUnreadable)
		case pc.Problem == nil:
		case errors.Is(pc.Problem, cluster.ErrClaimUnreadable):
			unreadable = pc.Problem
		case pc.Claim == nil, errors.Is(pc.Problem, cluster.ErrClaimNotOwned):
			if missing == nil {
				missing = pc.Problem
			}
		default:
			tolerable = append(tolerable, pc.Problem)
		}
	}
	switch {
	case missing != nil:
		return &Settlement{Cause: ClaimProblem, Outcome: api.Error, Code: api.ClaimNotReady, Problems: []error{missing}}
	case unreadable != nil:
		return &Settlement{Cause: ClaimProblem, Outcome: api.Undetermined, Code: api.ClaimNotReady, Problems: []error{unreadable}}
	case len(q.Claims) > 0:
		return &Settlement{Cause: NotAllocated, Outcome: api.Blocked, Code: api.ClaimNotReady}
	default:
		return &Settlement{Cause: HasDevices, Outcome: api.Allocated, Nodeless: true, Problems: tolerable}
	}
}

// claimProblem settles the matter for claims that the scheduler does not even look at, nil
// if there are none.
func claimProblem(q *eligibility.Question) *Settlement {
	for i := range q.PodClaims {
		pc := &q.PodClaims[i]
		if pc.Problem == nil && lifecycle.FullForPod(q.Cluster, q.Pod, pc.Claim) {
			return &Settlement{Cause: ClaimFull, Outcome: api.Error, Code: api.ClaimNotReady, Claim: pc}
		}
		s := &Settlement{Cause: ClaimProblem, Outcome: api.Error, Code: api.ClaimNotReady, Claim: pc, Problems: []error{pc.Problem}}
		switch {
		case pc.Problem == nil, pc.Claim != nil && errors.Is(pc.Problem, cluster.ErrClaimNotCreated), PodGroupMissing(pc):
			// The answer is that for the claim as it will be made.
			continue
		case errors.Is(pc.Problem, cluster.ErrClaimUnreadable):
			s.Outcome = api.Undetermined
		case errors.Is(pc.Problem, cluster.ErrClaimDeleting):
			s.Outcome = api.Blocked
		}
		return s
	}
	return nil
}

// PodGroupMissing reports whether the only problem of a claim is the pod's missing group.
func PodGroupMissing(pc *cluster.PodClaim) bool {
	return pc.Claim != nil && errors.Is(pc.Problem, cluster.ErrPodGroupMissing) && !errors.Is(pc.Problem, cluster.ErrClaimMissing)
}

// deletingTarget settles the matter for a claim that is being deleted: nobody who does not use it
// already can. What its deletion waits for is a finding.
func deletingTarget(q *eligibility.Question, t *target.Target) *Settlement {
	if q.Pod != nil || t.Object.Kind != api.KindClaim || q.PodClaims[0].Claim.DeletionTimestamp == nil {
		return nil
	}
	return &Settlement{Cause: ClaimDeleting, Outcome: api.Blocked, Code: api.ClaimNotReady, Nodeless: q.PodClaims[0].Claim.Status.Allocation != nil}
}

// unservedPod settles the matter for a pod without claims that asks for extended resources which
// nothing serves: NodeResourcesFit of the scheduler rejects every node.
func unservedPod(q *eligibility.Question, _ *target.Target) *Settlement {
	if len(q.PodClaims) > 0 || q.Pod == nil {
		return nil
	}
	names := q.Cluster.Unserved(q.Pod)
	if len(names) == 0 {
		return nil
	}
	return &Settlement{Cause: Unserved, Outcome: api.DoesNotFit, Code: api.NodeUnsuitable, Resource: names[0]}
}

// nothingToAllocate settles the matter for allocated claims of no waiting pod, unless the
// question asks for a node that cannot use them.
func nothingToAllocate(q *eligibility.Question, t *target.Target) *Settlement {
	if len(q.Claims) > 0 || q.Pod != nil || t.Only != nil && len(eligibility.Misfits(q, t.Only)) > 0 {
		return nil
	}
	return &Settlement{Cause: HasDevices, Outcome: api.Allocated, Nodeless: true}
}

// refusal makes the checks that come before any node is tried: the API server's for claims
// that do not exist yet, and the scheduler's PreFilter. It is nil if they pass.
func refusal(q *eligibility.Question) *Settlement {
	for _, c := range q.Claims {
		pc := &q.PodClaims[c.Index]
		if request := adminAccessDenied(q, c.Claim); request != "" && (pc.Generated || c.Claim.UID == "") {
			return &Settlement{Cause: AdminAccessDenied, Outcome: api.Error, Code: api.AdminAccessDenied, Requests: []string{request}, Claim: pc}
		}
		for i := range c.Claim.Spec.Devices.Requests {
			r := &c.Claim.Spec.Devices.Requests[i]
			s := &Settlement{Outcome: api.Error, Code: api.FeatureDisabled, Requests: []string{r.Name}, Claim: pc}
			switch {
			case len(r.FirstAvailable) > 0 && !q.Cluster.Gates.Enabled("DRAPrioritizedList"):
				s.Cause = AlternativesDisabled
				return s
			case r.Exactly == nil && len(r.FirstAvailable) == 0:
				s.Cause = RequestUnknown
				return s
			}
		}
	}
	return classesMissing(q)
}

// classesMissing settles the matter for requests with missing classes, nil if there are
// none.
func classesMissing(q *eligibility.Question) *Settlement {
	gap := q.Cluster.Snapshot.Gap(snapshot.ResourceClasses)
	var missing *Settlement
	for _, c := range q.Claims {
		for _, r := range slices.Concat(cluster.Requests(c.Claim)...) {
			switch {
			case q.Cluster.Snapshot.Class(r.Class) != nil || missing != nil && slices.Contains(missing.Classes, r.Class):
			case gap != nil:
				return &Settlement{Cause: ClassUnread, Outcome: api.Undetermined, Code: api.ClassNotFound, Requests: []string{r.Name}, Classes: []string{r.Class}, Gap: gap}
			case missing == nil:
				missing = &Settlement{Cause: ClassMissing, Outcome: api.Error, Code: api.ClassNotFound, Requests: []string{r.Name}, Classes: []string{r.Class}}
			default:
				missing.Requests, missing.Classes = append(missing.Requests, r.Name), append(missing.Classes, r.Class)
			}
		}
	}
	return missing
}

// adminAccessDenied repeats the API server's check (KEP-5018) that a claim with admin access is in
// a namespace for that. It names the request that is not, empty if the check passes.
func adminAccessDenied(q *eligibility.Question, claim *resourceapi.ResourceClaim) string {
	namespace := q.Cluster.Snapshot.Namespace(claim.Namespace)
	if namespace == nil || namespace.Labels[resourceapi.DRAAdminNamespaceLabelKey] == "true" {
		return ""
	}
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess {
			return r.Name
		}
	}
	return ""
}
