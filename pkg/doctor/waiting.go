// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Codes of the checks for waiting pods.
const (
	codeNever = "DRA1601"
	codeFails = "DRA1602"
	// codeUnheard is the code of the check for pods that fit.
	codeUnheard = "DRA1609"
)

// waitingNeeds returns the resources that the answers for waiting pods need.
func waitingNeeds() []string {
	return []string{snapshot.ResourcePods, snapshot.ResourceClaims, snapshot.ResourceSlices, snapshot.ResourceClasses, snapshot.ResourceNodes}
}

func neverFits(e *api.Explanation) bool { return explain.When(e) == api.Never }

func failsToSchedule(e *api.Explanation) bool { return e.Verdict == api.Error }

// waitingCheck returns a check of the answers for pods that wait for devices. Pods of one
// owner with one answer are one finding.
func waitingCheck(applies func(*api.Explanation) bool) func(context.Context, *cluster) ([]api.Finding, error) {
	return func(ctx context.Context, in *cluster) ([]api.Finding, error) {
		answers, err := in.answers(ctx)
		if err != nil {
			return nil, err
		}
		var chosen []*api.Explanation
		for _, e := range answers {
			if applies(e) {
				chosen = append(chosen, e)
			}
		}
		var found []api.Finding
		for _, group := range explain.GroupAnswers(chosen) {
			first := group.First
			f := api.Finding{Message: fmt.Sprintf("%s in namespace %s: %s", group.Name(), first.Target.Namespace, first.Summary)}
			for i := range first.Claims {
				o := api.Ref(api.KindClaim, first.Claims[i].Namespace, first.Claims[i].Name)
				f.Evidence = append(f.Evidence, api.Evidence{Object: o, Path: "spec.devices.requests", Found: string(first.Code)})
			}
			for _, name := range group.Names {
				f.Objects = append(f.Objects, api.Ref(api.KindPod, first.Target.Namespace, name))
			}
			f.Remedy = explained(first)
			found = append(found, f)
		}
		return found, nil
	}
}

// queueLength is how many waiting pods make a claim worth a finding.
const queueLength = 3

// findQueues looks for claims whose release alone makes several pods fit.
func findQueues(ctx context.Context, in *cluster) ([]api.Finding, error) {
	answers, err := in.answers(ctx)
	if err != nil {
		return nil, err
	}
	waiting := map[api.ObjectRef][]api.ObjectRef{}
	for _, group := range explain.GroupAnswers(answers) {
		for i := range group.First.Remedies {
			edits := group.First.Remedies[i].Edits
			if len(edits) != 1 || edits[0].Path != "/status/allocation" {
				continue
			}
			for _, name := range group.Names {
				waiting[edits[0].Object] = append(waiting[edits[0].Object], api.Ref(api.KindPod, group.First.Target.Namespace, name))
			}
		}
	}
	var found []api.Finding
	for _, claim := range slices.SortedFunc(maps.Keys(waiting), func(a, b api.ObjectRef) int { return strings.Compare(a.String(), b.String()) }) {
		pods := waiting[claim]
		if len(pods) < queueLength {
			continue
		}
		found = append(found, api.Finding{
			Objects:  append([]api.ObjectRef{claim}, pods...),
			Message:  fmt.Sprintf("%d pods wait for the devices of claim %s/%s", len(pods), claim.Namespace, claim.Name),
			Evidence: []api.Evidence{{Object: claim, Path: "status.allocation", Found: "allocated", Required: "released"}},
			Remedy: &api.NextStep{
				Actor: api.ActorUser, Text: "this names who uses the claim; it is released when its last pod ends",
				Commands: []string{"kubectl dra tree " + shell.Quote("claim/"+claim.Name) + " -n " + shell.Quote(claim.Namespace)},
			},
		})
	}
	return found, nil
}

// explained returns the first remedy or next step for a pod, and the command for the whole
// answer.
func explained(e *api.Explanation) *api.NextStep {
	step := whole(e.Target.Namespace, e.Target.Name)
	switch {
	case len(e.Remedies) > 0:
		step.Actor, step.Text = e.Remedies[0].Actor, e.Remedies[0].Change
		if more := len(e.Remedies) - 1; more > 0 {
			step.Text += fmt.Sprintf(" (or one of %s)", english.Count(more, "other change"))
		}
	case len(e.NextSteps) > 0:
		step.Actor, step.Text = e.NextSteps[0].Actor, e.NextSteps[0].Text
	case e.SameAs.Kind != "":
		step.Text = "what helps, and all conditions:"
	}
	return step
}

// whole returns the command for the whole answer about a pod.
func whole(namespace, name string) *api.NextStep {
	return &api.NextStep{
		Actor: api.ActorUser, Text: "no change is known that helps; all conditions:",
		Commands: []string{"kubectl dra why " + shell.Quote("pod/"+name) + " -n " + shell.Quote(namespace)},
	}
}

// explainWaiting explains the pods that wait for devices.
func explainWaiting(ctx context.Context, c *facts.Cluster) ([]explain.Answer, error) {
	waiting := c.Waiting()
	targets := make([]explain.Options, 0, len(waiting))
	for _, pod := range waiting {
		targets = append(targets, explain.Options{Object: api.RefTo(api.KindPod, pod)})
	}
	answers, err := explain.ExplainEquivalent(ctx, c, targets)
	if err != nil {
		return nil, fmt.Errorf("explain the pods that wait: %w", err)
	}
	return answers, nil
}

func findBlockedPods(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	blocked := in.blocked()
	for i := range blocked {
		pod := &blocked[i]
		if in.saidOf(pod) || pod.Unregistered != "" && in.opts.Makes(CodeUnregistered) {
			continue
		}
		o := api.Ref(api.KindPod, pod.Namespace, pod.Name)
		step := whole(pod.Namespace, pod.Name)
		if first := firstStep(pod.Steps); first != nil {
			step.Actor, step.Text = first.Actor, first.Text
		}
		found = append(found, api.Finding{
			Objects:  []api.ObjectRef{o},
			Message:  fmt.Sprintf("pod %s/%s, stage %s: %s", pod.Namespace, pod.Name, pod.Stage, pod.Summary),
			Evidence: []api.Evidence{{Object: o, Path: "status", Found: string(pod.Code)}},
			Remedy:   step,
		})
	}
	return found, nil
}

// findRefusedWorkloads finds workloads whose pods are not created.
func findRefusedWorkloads(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, r := range explain.RefusedWorkloads(in.cluster) {
		w := r.Workload
		f := api.Finding{
			Objects:  []api.ObjectRef{w.Ref()},
			Message:  fmt.Sprintf("%s %s/%s: %s", w.Kind, w.Namespace, w.Name, r.Reason),
			Evidence: r.Evidence,
		}
		if len(r.Steps) > 0 {
			f.Remedy = &r.Steps[0]
		}
		found = append(found, f)
	}
	return found, nil
}

// findUnheard looks for pods that fit and that kube-scheduler has not looked at. Where it has
// reported about any pod since they were created, something else holds them back.
func findUnheard(ctx context.Context, in *cluster) ([]api.Finding, error) {
	answers, err := in.answers(ctx)
	if err != nil {
		return nil, err
	}
	snap := in.cluster.Snapshot
	var last metav1.Time
	for _, pod := range snap.Pods {
		if c := lifecycle.PodCondition(pod, corev1.PodScheduled); c != nil && last.Before(&c.LastTransitionTime) && len(pod.Spec.SchedulingGates) == 0 {
			last = c.LastTransitionTime
		}
	}
	f := api.Finding{Remedy: &api.NextStep{
		Actor: api.ActorAdmin, Text: "see whether kube-scheduler runs, and what its log says",
		Commands: []string{"kubectl get pods -n " + metav1.NamespaceSystem + " -l " + snapshot.ComponentLabel + "=" + snapshot.ComponentScheduler, "kubectl get leases -n " + metav1.NamespaceSystem + " -o custom-columns=NAME:.metadata.name,HOLDER:.spec.holderIdentity,RENEWED:.spec.renewTime"},
	}}
	first := snap.Now()
	for _, e := range answers {
		pod := snap.Pod(e.Target.Namespace, e.Target.Name)
		if pod == nil || e.Verdict != api.Fits || e.Stage != api.StageAllocation && e.Stage != api.StageNodeFit || pod.Spec.SchedulingGroup != nil || !lifecycle.ByDefaultScheduler(pod) ||
			!lifecycle.Unheard(snap, pod) || pod.CreationTimestamp.Before(&last) {
			continue
		}
		f.Objects = append(f.Objects, api.RefTo(api.KindPod, pod))
		if pod.CreationTimestamp.Time.Before(first) {
			// It stands for all of them.
			first = pod.CreationTimestamp.Time
			f.Evidence = []api.Evidence{{Object: api.RefTo(api.KindPod, pod), Path: "status.conditions[type=PodScheduled]", Found: "missing", Required: "set by kube-scheduler"}}
		}
	}
	n := len(f.Objects)
	if n == 0 {
		return nil, nil
	}
	f.Message = fmt.Sprintf("kube-scheduler has not looked at %s that %s, the first created %s ago", english.Count(n, "pod"), english.Plural(n, "fits", "fit"), duration.HumanDuration(snap.Now().Sub(first)))
	if reason, evidence := lifecycle.NotReadyComponent(snap, snapshot.ComponentScheduler); reason != "" {
		f.Message, f.Evidence = f.Message+"; "+reason, append(evidence, f.Evidence...)
	}
	return []api.Finding{f}, nil
}

// firstStep returns the first step that somebody can take; steps that only wait come after
// it.
func firstStep(steps []api.NextStep) *api.NextStep {
	actor := lifecycle.Actor(steps)
	if at := slices.IndexFunc(steps, func(s api.NextStep) bool { return s.Actor == actor }); at >= 0 {
		return &steps[at]
	}
	return nil
}
