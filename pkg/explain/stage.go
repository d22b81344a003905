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

// describeStage says where the target stands in its life, and returns why there.
func (x *builder) describeStage() []lifecycle.Finding {
	for i, stage := range x.PodStages {
		x.out.Pods[i].Stage = stage
	}
	x.out.Stage = x.Life.Stage
	who := ""
	if x.LifeOf != nil {
		who = x.named(x.LifeOf)
	}
	var findings []lifecycle.Finding
	if x.Pod == nil && x.Target.Object.Kind == api.KindClaim {
		findings = lifecycle.ClaimFindings(x.Cluster, x.Target.Users, x.PodClaims[0].Claim)
	}
	for _, f := range x.Life.Findings {
		// What a claim and the pod that uses it have in common is said of the claim.
		same := func(other lifecycle.Finding) bool { return other.Reason == f.Reason }
		// What the workload does, or what is true of a gang, is not said of one of its pods.
		if x.out.Code == api.GangIncomplete {
			who = ""
		}
		if f.Reason != "" && !slices.ContainsFunc(findings, same) && !slices.ContainsFunc(x.Creation.Findings, same) {
			f.Reason, who = who+f.Reason, ""
		}
		findings = append(findings, f)
	}
	x.report(findings)
	if x.Life.Blocked != nil && x.Outcome == api.Blocked {
		x.out.Verdict, x.out.Code = x.Outcome, x.Code
	}
	x.nextSteps()
	return findings
}

// named begins a sentence about a pod that is not itself the target.
func (x *builder) named(pod *corev1.Pod) string {
	if x.Target.Object.Kind == api.KindPod {
		return ""
	}
	return "pod " + pod.Name + ": "
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
	switch {
	case x.tooOld():
		x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorUser, Text: "install a newer version of kubectl-dra"})
	case x.out.Verdict == api.Undetermined:
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
	if x.Pod == nil && x.Target.Object.Kind == api.KindClaim && len(x.Claims) > 0 && x.Claims[0].Claim.UID != "" && x.Claims[0].Claim.DeletionTimestamp == nil &&
		len(x.Target.Users) == 0 && !lifecycle.Hides(x.Cluster.Snapshot, snapshot.ResourcePods, x.Target.Object.Namespace) {
		x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorUser, Text: "no pod uses the claim: it is allocated when the first one does"})
	}
}
