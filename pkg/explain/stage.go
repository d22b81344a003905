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
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// describeStage finds where the target stands in its life, and returns why there.
func (x *builder) describeStage() []lifecycle.Finding {
	var own lifecycle.Life
	who := ""
	var creation lifecycle.Life
	if x.target.Creator != nil && x.target.End == nil {
		creation = lifecycle.OfCreator(x.Cluster.Snapshot, x.target.Creator)
	}
	switch pod := x.Pod; {
	case pod == nil:
	case x.target.Hypothetical:
		own.Findings = append(own.Findings, lifecycle.GateFindings(pod)...)
	default:
		own = lifecycle.Of(x.Cluster, pod, x.PodClaims)
		if own.Stage == api.StageAllocation && len(x.Reach.Candidates) == 0 && len(x.Reach.Unsuitable) > 0 && !fitsElsewhere(x.Question, x.target.Only) {
			own.Stage = api.StageNodeFit
		}
		who = x.named(pod)
	}
	if len(x.blockedBy) > 0 {
		own = x.blockedLife(own, creation.Blocked)
	}
	own = own.After(creation)
	forClaim := x.Pod == nil && x.target.Object.Kind == api.KindClaim
	for i := range x.out.Pods {
		pod := x.target.Users[i]
		if pod == x.Pod {
			x.out.Pods[i].Stage = own.Stage
			continue
		}
		other := lifecycle.Of(x.Cluster, pod, x.Cluster.Claims.OfPod(pod))
		x.out.Pods[i].Stage = other.Stage
		if snapshot.Finished(pod) {
			// Whether the claim is still reserved for it is found out for the claim.
			other.Findings = nil
		}
		if forClaim && (own.Stage == "" || !own.HasReason() && other.HasReason()) {
			own, who = other, x.named(pod)
		}
	}
	x.out.Stage = own.Stage
	var findings []lifecycle.Finding
	if forClaim {
		findings = lifecycle.ClaimFindings(x.Cluster, x.target.Users, x.PodClaims[0].Claim)
	}
	for _, f := range own.Findings {
		// What a claim and the pod that uses it have in common is said of the claim.
		same := func(other lifecycle.Finding) bool { return other.Reason == f.Reason }
		// What the workload does, or what is true of a gang, is not said of one of its pods.
		if x.out.Code == api.GangIncomplete {
			who = ""
		}
		if f.Reason != "" && !slices.ContainsFunc(findings, same) && !slices.ContainsFunc(creation.Findings, same) {
			f.Reason, who = who+f.Reason, ""
		}
		findings = append(findings, f)
	}
	x.report(findings)
	x.block(&own)
	x.nextSteps()
	return findings
}

// named begins a sentence about a pod that is not itself the target.
func (x *builder) named(pod *corev1.Pod) string {
	if x.target.Object.Kind == api.KindPod {
		return ""
	}
	return "pod " + pod.Name + ": "
}

// block turns the verdict into Blocked if the pod has its devices and cannot work
// with them. own is where the pod stands.
func (x *builder) block(own *lifecycle.Life) {
	if own.Blocked == nil {
		return
	}
	switch {
	case x.out.Verdict == api.Allocated, x.out.Verdict == api.Fits, x.out.Verdict == api.Blocked:
	case x.out.Verdict == api.DoesNotFit && own.Stage == api.StageBinding:
		// Devices that cannot be bound are released and others are looked for.
	default:
		return
	}
	x.out.Verdict, x.out.Code = api.Blocked, own.Blocked.Code
}

// report puts the evidence and the steps of findings into the explanation.
func (x *builder) report(findings []lifecycle.Finding) {
	for _, f := range findings {
		for _, e := range f.Evidence {
			if !slices.Contains(x.out.StageEvidence, e) {
				x.out.StageEvidence = append(x.out.StageEvidence, e)
			}
		}
		for _, step := range f.Steps {
			if !slices.ContainsFunc(x.out.NextSteps, func(have api.NextStep) bool { return have.Actor == step.Actor && have.Text == step.Text }) {
				x.out.NextSteps = append(x.out.NextSteps, step)
			}
		}
	}
}

// nextSteps says who can do something that needs no proof by the allocator.
func (x *builder) nextSteps() {
	if x.out.Verdict == api.Undetermined {
		var hidden []string
		leftOut := false
		for _, gap := range x.Cluster.Snapshot.Gaps {
			if gap.LeftOut {
				leftOut = true
			} else if slices.Contains([]string{snapshot.ResourceNodes, snapshot.ResourceSlices, snapshot.ResourceClasses, snapshot.ResourceClaims, snapshot.ResourceTemplates, snapshot.ResourcePods}, gap.Resource) {
				kind, _, _ := strings.Cut(gap.Resource, ".")
				hidden = append(hidden, kind)
			}
		}
		if len(hidden) > 0 {
			x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf(
				"ask a user who can list %s in all namespaces to run this, or to save a snapshot: kubectl dra snapshot -o cluster.json.gz", english.JoinAnd(hidden))})
		}
		if leftOut {
			x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorAdmin, Text: "correct or delete what was left out"})
		}
	}
	for i := range x.PodClaims {
		pc, pod := &x.PodClaims[i], x.Pod
		switch {
		case pod == nil || !snapshot.Waits(pod):
		case errors.Is(pc.Problem, cluster.ErrTemplateMissing):
			x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf("create ResourceClaimTemplate %s in namespace %s, or name another one", pc.Template, pod.Namespace)})
		case errors.Is(pc.Problem, cluster.ErrClaimMissing) && pc.Template != "":
			x.out.NextSteps = append(x.out.NextSteps, lifecycle.DeletedClaim(pod, pc))
		case errors.Is(pc.Problem, cluster.ErrClaimMissing):
			x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf("create ResourceClaim %s in namespace %s, or name another one", claimName(x.Question, pc), pod.Namespace)})
		}
	}
	if x.Pod == nil && x.target.Object.Kind == api.KindClaim && len(x.Claims) > 0 && x.Claims[0].Claim.UID != "" && x.Claims[0].Claim.DeletionTimestamp == nil &&
		len(x.target.Users) == 0 && !lifecycle.Hides(x.Cluster.Snapshot, snapshot.ResourcePods, x.target.Object.Namespace) {
		x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorUser, Text: "no pod uses the claim: it is allocated when the first one does"})
	}
}
