// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
)

// entryPath returns the path of an entry of a pod's claims.
func entryPath(entry string) string { return fmt.Sprintf("spec.resourceClaims[name=%s]", entry) }

// foreignClaim reports a claim in the pod's status that was made for another pod, mostly
// for an earlier pod of the same name.
func foreignClaim(pod *corev1.Pod, pc *cluster.PodClaim) Finding {
	f := Finding{Instead: true}
	owner := metav1.GetControllerOfNoCopy(pc.Claim)
	whose, found := "nobody", "no controller"
	if owner != nil {
		whose = fmt.Sprintf("%s %s", strings.ToLower(owner.Kind), owner.Name)
		found = string(owner.UID)
		if owner.Name == pod.Name && owner.Kind == api.KindPod {
			whose = "an earlier pod of the same name"
		}
	}
	f.Reason = fmt.Sprintf("claim %s still exists and belongs to %s, not to this pod", pc.Claim.Name, whose)
	f.AddEvidence(api.RefTo(api.KindClaim, pc.Claim), "metadata.ownerReferences[controller=true].uid", found, string(pod.UID))
	if owner != nil && owner.Kind != api.KindPod {
		return f
	}
	f.Step(api.ActorNobody, "the garbage collector deletes the claim whose owner is gone, and the resourceclaim controller creates another one for this pod")
	return f
}

// DeletedClaim returns the step that brings back a deleted claim that was made from a
// template. The resourceclaim controller may look at the pod while it still remembers the
// claim, and then does not look again before the pod or its template changes (claimExists
// in pkg/controller/resourceclaim/controller.go). Any change of the pod is enough; a claim
// made by hand would not be the pod's.
func DeletedClaim(pod *corev1.Pod, pc *cluster.PodClaim) api.NextStep {
	name := pc.Entry
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.Name == pc.Entry && status.ResourceClaimName != nil {
			name = *status.ResourceClaimName
		}
	}
	return api.NextStep{
		Actor: api.ActorUser,
		Text: fmt.Sprintf("claim %s, which was created from template %s, has been deleted: the resourceclaim controller creates another one when pod %s changes in any way, or is recreated",
			name, pc.Template, pod.Name),
		Commands: []string{fmt.Sprintf("kubectl annotate %s --overwrite %s", shell.KubectlObjects("pod", pod.Namespace, pod.Name), shell.Quote("dra.kubectl.dev/deleted-claim="+name))},
	}
}

// claimNameOf returns the name of the claim that an entry of a pod refers to.
func claimNameOf(pod *corev1.Pod, entry string) string {
	for _, c := range pod.Spec.ResourceClaims {
		if c.Name == entry && c.ResourceClaimName != nil {
			return *c.ResourceClaimName
		}
	}
	return ""
}
