// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// podClaimAnnotation is set by the controller that makes claims from templates.
const podClaimAnnotation = "resource.kubernetes.io/pod-claim-name"

// plannedAnnotation is on a claim that does not exist yet. Its value is the name of the
// ResourceClaimTemplate, empty for the claim for extended resources.
const plannedAnnotation = "dra.kubectl.dev/planned-claim"

// Planned marks a claim as not yet created, from a template or, if that is empty, for
// extended resources. It needs a name that no other claim of the pod has; it is neither the
// final name nor shown to anybody.
func Planned(claim *resourceapi.ResourceClaim, template string) {
	snapshot.Annotate(claim, plannedAnnotation, []string{template})
}

// IsPlanned reports whether a claim does not exist yet, and from which template it will be
// made, empty for the claim for extended resources.
func IsPlanned(claim *resourceapi.ResourceClaim) (template string, planned bool) {
	template, planned = claim.Annotations[plannedAnnotation]
	return template, planned && claim.UID == ""
}

// ClaimTitle identifies a claim of a pod by the name of the claim or, if that does not
// exist yet, of the entry in the pod's spec.resourceClaims.
func ClaimTitle(claim *resourceapi.ResourceClaim) string {
	if _, planned := IsPlanned(claim); planned {
		return claim.Annotations[podClaimAnnotation]
	}
	return claim.Name
}
