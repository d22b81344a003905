// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
