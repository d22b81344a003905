// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// describeStage says where the target stands in its life, and returns why there.
func describeStage(v *verdict.Verdict, out *api.Explanation) []lifecycle.Finding {
	for i, stage := range v.PodStages {
		out.Pods[i].Stage = stage
	}
	out.Stage = v.Life.Stage
	who := ""
	if v.LifeOf != nil {
		who = named(v.Target.Object, v.LifeOf)
	}
	var findings []lifecycle.Finding
	if v.Pod == nil && v.Target.Object.Kind == api.KindClaim {
		findings = lifecycle.ClaimFindings(v.Cluster, v.Target.Users, v.PodClaims[0].Claim)
	}
	for _, f := range v.Life.Findings {
		// What a claim and the pod that uses it have in common is said of the claim.
		same := func(other lifecycle.Finding) bool { return other.Reason == f.Reason }
		// What the workload does, or what is true of a gang, is not said of one of its pods.
		if out.Code == api.GangIncomplete {
			who = ""
		}
		if f.Reason != "" && !slices.ContainsFunc(findings, same) && !slices.ContainsFunc(v.Creation.Findings, same) {
			f.Reason, who = who+f.Reason, ""
		}
		findings = append(findings, f)
	}
	report(out, findings)
	if v.Life.Blocked != nil && v.Outcome == api.Blocked {
		out.Verdict, out.Code = v.Outcome, v.Code
	}
	out.NextSteps = append(out.NextSteps, nextSteps(v, out.Verdict)...)
	return findings
}

// named begins a sentence about a pod that is not itself the target.
func named(asked api.ObjectRef, pod *corev1.Pod) string {
	if asked.Kind == api.KindPod {
		return ""
	}
	return "pod " + pod.Name + ": "
}

// report puts the evidence and the steps of findings into the explanation.
func report(out *api.Explanation, findings []lifecycle.Finding) {
	for _, f := range findings {
		for _, e := range f.Evidence {
			if !slices.Contains(out.StageEvidence, e) {
				out.StageEvidence = append(out.StageEvidence, e)
			}
		}
		for _, step := range f.Steps {
			if !slices.ContainsFunc(out.NextSteps, func(have api.NextStep) bool { return have.Actor == step.Actor && have.Text == step.Text }) {
				out.NextSteps = append(out.NextSteps, step)
			}
		}
	}
}

// nextSteps says who can do something that needs no proof by the allocator.
func nextSteps(v *verdict.Verdict, outcome api.Verdict) []api.NextStep {
	var steps []api.NextStep
	switch {
	case tooOld(v, outcome):
		steps = append(steps, api.NextStep{Actor: api.ActorUser, Text: "install a newer version of kubectl-dra"})
	case outcome == api.Undetermined:
		var hidden []string
		leftOut := false
		for _, gap := range v.Cluster.Snapshot.Gaps {
			if gap.LeftOut {
				leftOut = true
			} else if slices.Contains([]string{snapshot.ResourceNodes, snapshot.ResourceSlices, snapshot.ResourceClasses, snapshot.ResourceClaims, snapshot.ResourceTemplates, snapshot.ResourcePods}, gap.Resource) {
				kind, _, _ := strings.Cut(gap.Resource, ".")
				hidden = append(hidden, kind)
			}
		}
		if len(hidden) > 0 {
			steps = append(steps, api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf(
				"ask a user who can list %s in all namespaces to run this, or to save a snapshot: kubectl dra snapshot -o cluster.json.gz", english.JoinAnd(hidden))})
		}
		if leftOut {
			steps = append(steps, api.NextStep{Actor: api.ActorAdmin, Text: "correct or delete what was left out"})
		}
	}
	for i := range v.PodClaims {
		pc, pod := &v.PodClaims[i], v.Pod
		switch {
		case pod == nil || !snapshot.Waits(pod):
		case errors.Is(pc.Problem, cluster.ErrTemplateMissing):
			steps = append(steps, api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf("create ResourceClaimTemplate %s in namespace %s, or name another one", pc.Template, pod.Namespace)})
		case errors.Is(pc.Problem, cluster.ErrClaimMissing) && pc.Template != "":
			steps = append(steps, lifecycle.DeletedClaim(pod, pc))
		case errors.Is(pc.Problem, cluster.ErrClaimMissing):
			steps = append(steps, api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf("create ResourceClaim %s in namespace %s, or name another one", claimName(v.Question, pc), pod.Namespace)})
		}
	}
	if v.Pod == nil && v.Target.Object.Kind == api.KindClaim && len(v.Claims) > 0 && v.Claims[0].Claim.UID != "" && v.Claims[0].Claim.DeletionTimestamp == nil &&
		len(v.Target.Users) == 0 && !lifecycle.Hides(v.Cluster.Snapshot, snapshot.ResourcePods, v.Target.Object.Namespace) {
		steps = append(steps, api.NextStep{Actor: api.ActorUser, Text: "no pod uses the claim: it is allocated when the first one does"})
	}
	return steps
}

// Actor returns who can help a target that waits: the user if one of the remedies is
// theirs, else an admin, else who the next steps are for. It is empty where nothing is
// known that would help.
func Actor(e *api.Explanation) string {
	if len(e.Remedies) == 0 {
		return lifecycle.Actor(e.NextSteps)
	}
	steps := make([]api.NextStep, 0, len(e.Remedies))
	for i := range e.Remedies {
		steps = append(steps, api.NextStep{Actor: e.Remedies[i].Actor})
	}
	return lifecycle.Actor(steps)
}
