// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// beyondScheduling deals with pods that the scheduler has done with: those that
// are bound, finished or on their way out. It is nil for any others.
func (x *builder) beyondScheduling() *settlement {
	pod := x.Pod
	if end := x.target.End; end != nil {
		return &settlement{verdict: api.Allocated, message: endText(end), nodeless: true, finished: true}
	}
	if pod == nil {
		return nil
	}
	switch {
	case snapshot.Finished(pod):
		text := fmt.Sprintf("the pod is finished (%s) and no longer needs devices", pod.Status.Phase)
		return &settlement{verdict: api.Allocated, message: text, nodeless: true, finished: true}
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil:
		return &settlement{verdict: api.Error, code: api.ClaimNotReady, message: "the pod is being deleted and is no longer scheduled"}
	case pod.Spec.NodeName == "", x.target.IsElsewhere(pod):
		return nil
	default:
		return x.bound(pod)
	}
}

// withoutPods deals with an object that has no pods, and of which it is not known
// which pods it creates. What keeps it from creating them is a finding.
func (x *builder) withoutPods() *settlement {
	if x.Pod != nil || x.target.Creator == nil {
		return nil
	}
	if life := lifecycle.OfCreator(x.Cluster.Snapshot, x.target.Creator); life.Blocked != nil {
		return &settlement{verdict: api.Blocked, code: life.Blocked.Code, nodeless: true}
	}
	kind := x.target.Object.Kind
	for _, gap := range x.Cluster.Snapshot.Gaps {
		if gap.Resource == snapshot.ResourcePods || mayOwnPods(gap.Resource) {
			return &settlement{verdict: api.Undetermined, code: api.NoPods, nodeless: true, message: fmt.Sprintf(
				"the %s exists, and which pods belong to it is not known: %s", kind, gap.Reason)}
		}
	}
	return &settlement{verdict: api.Undetermined, code: api.NoPods, nodeless: true, message: fmt.Sprintf(
		"the %s exists and has no pods, and nothing that is known keeps it from creating them: see its status and events", kind)}
}

// mayOwnPods reports whether what the pods of a workload belong to may be of a resource. That
// may have any kind: those that are read for something else do not, but for Jobs.
func mayOwnPods(resource string) bool {
	return resource == snapshot.ResourceJobs || !slices.Contains(snapshot.Resources(), resource)
}

// endText says how a Job ended.
func endText(end *snapshot.JobEnd) string {
	switch {
	case !end.Failed():
		return "the Job is complete and creates no more pods"
	case end.Reason != "":
		return "the Job has failed (" + end.Reason + ") and creates no more pods"
	default:
		return "the Job has failed and creates no more pods"
	}
}

// bound deals with a pod on its node: nobody allocates claims for it any more,
// and the kubelet refuses those that are not the pod's.
func (x *builder) bound(pod *corev1.Pod) *settlement {
	var tolerable []string
	var missing, unreadable error
	for i := range x.PodClaims {
		pc := &x.PodClaims[i]
		switch {
		case pc.ExtendedResources && pc.Generated && lifecycle.Hides(x.Cluster.Snapshot, snapshot.ResourceClaims, pod.Namespace):
			unreadable = fmt.Errorf("the claim for the extended resources of the pod %w", cluster.ErrClaimUnreadable)
		case pc.Problem == nil:
		case errors.Is(pc.Problem, cluster.ErrClaimUnreadable):
			unreadable = pc.Problem
		case pc.Claim == nil, errors.Is(pc.Problem, cluster.ErrClaimNotOwned):
			if missing == nil {
				missing = pc.Problem
			}
		default:
			tolerable = append(tolerable, pc.Problem.Error())
		}
	}
	switch {
	case missing != nil:
		return &settlement{verdict: api.Error, code: api.ClaimNotReady, message: missing.Error()}
	case unreadable != nil:
		return &settlement{verdict: api.Undetermined, code: api.ClaimNotReady, message: unreadable.Error()}
	case len(x.Claims) > 0:
		text := fmt.Sprintf("the pod is bound to node %s, but its claims are not allocated; the scheduler allocates claims only before it binds a pod", pod.Spec.NodeName)
		return &settlement{verdict: api.Blocked, code: api.ClaimNotReady, message: text}
	default:
		text := strings.Join(append([]string{allocatedSummary(x.Pod, x.out.Claims)}, tolerable...), "; ")
		return &settlement{verdict: api.Allocated, message: text, nodeless: true}
	}
}

// deletingTarget settles the matter for a claim that is being deleted: nobody
// who does not use it already can. What its deletion waits for is a finding.
func (x *builder) deletingTarget() *settlement {
	if x.Pod != nil || x.target.Object.Kind != api.KindClaim {
		return nil
	}
	claim := x.PodClaims[0].Claim
	if claim.DeletionTimestamp == nil {
		return nil
	}
	return &settlement{
		verdict: api.Blocked, code: api.ClaimNotReady, nodeless: claim.Status.Allocation != nil,
		message: fmt.Sprintf("ResourceClaim %s %s", naming.Qualified(claim), cluster.ErrClaimDeleting),
	}
}

// nothingToAllocate settles the matter for claims that are allocated and that no
// waiting pod uses, unless the question is about a node that cannot use them.
func (x *builder) nothingToAllocate() *settlement {
	if len(x.Claims) > 0 || x.Pod != nil || x.target.Only != nil && len(funnel.Misfits(x.Question, x.target.Only)) > 0 {
		return nil
	}
	return &settlement{verdict: api.Allocated, message: allocatedSummary(x.Pod, x.out.Claims), nodeless: true}
}
