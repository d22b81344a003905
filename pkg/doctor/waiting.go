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

	"github.com/kubectl-dra/kubectl-dra/pkg/admission"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// The codes of the checks for pods that wait in vain.
const (
	codeNever = "DRA1601"
	codeFails = "DRA1602"
)

// waitingNeeds are what has to be read to answer for pods that wait.
func waitingNeeds() []string {
	return []string{snapshot.ResourcePods, snapshot.ResourceClaims, snapshot.ResourceSlices, snapshot.ResourceClasses, snapshot.ResourceNodes}
}

func neverFits(e *api.Explanation) bool { return explain.When(e) == api.Never }

func failsToSchedule(e *api.Explanation) bool { return e.Verdict == api.Error }

func waitingChecks() []Check {
	needs := waitingNeeds()
	return []Check{
		{
			Code: codeNever, Title: "pod that can never fit", Severity: api.SeverityError, Needs: needs,
			About:  "A pod waits for devices that the nodes of the cluster could not give it if all other claims were released. Waiting does not help.",
			Advice: "'kubectl dra why' says which conditions conflict, and which changes make the pod fit.",
			find:   waitingCheck(neverFits),
		},
		{
			Code: codeFails, Title: "pod whose scheduling fails", Severity: api.SeverityError, Needs: needs,
			About:  "The scheduler ends each attempt for a pod with an error before it has looked at all nodes: a selector fails, a class or a feature gate is missing.",
			Advice: "'kubectl dra why' names the error and what causes it.",
			find:   waitingCheck(failsToSchedule),
		},
		{
			Code: "DRA1603", Title: "pod that has devices and does not work", Severity: api.SeverityError, Needs: []string{snapshot.ResourcePods, snapshot.ResourceClaims},
			About:  "A pod has its devices allocated and is stuck after that: the driver does not prepare them, the runtime does not inject them, a taint is about to evict it.",
			Advice: "'kubectl dra why' names the stage, the proof and who can act.",
			find:   findBlockedPods,
		},
		{
			Code: "DRA1604", Title: "quota for devices that is nearly used", Severity: api.SeverityInfo, Needs: []string{snapshot.ResourceQuotas},
			About:  "A ResourceQuota for claims, or for the devices of a class, is used to at least nine tenths. Beyond it, the API server refuses claims, and those of templates are not created.",
			Advice: "Raise the quota, or delete claims that are not used.",
			find:   findTightQuotas,
		},
		{
			Code: "DRA1605", Title: "pods that wait for the devices of one claim", Severity: api.SeverityInfo, Needs: needs,
			About:  "Several pods would fit if one claim were released, and that claim alone. They get the devices one after another.",
			Advice: "See which pods use the claim, and whether it is still needed.",
			find:   findQueues,
		},
	}
}

// waitingCheck is a check of the answers for pods that wait for devices. Pods of
// one owner with one answer are one finding.
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
				o := api.KindClaim + "/" + first.Claims[i].Namespace + "/" + first.Claims[i].Name
				f.Evidence = append(f.Evidence, api.Evidence{Object: o, Path: "spec.devices.requests", Found: string(first.Code)})
			}
			for _, name := range group.Names {
				f.Objects = append(f.Objects, api.KindPod+"/"+first.Target.Namespace+"/"+name)
			}
			f.Remedy = explained(first.Target.Namespace, first.Target.Name)
			found = append(found, f)
		}
		return found, nil
	}
}

// queueLength is how many pods that wait for one claim are worth telling.
const queueLength = 3

// findQueues looks for claims whose release alone makes several pods fit.
func findQueues(ctx context.Context, in *cluster) ([]api.Finding, error) {
	answers, err := in.answers(ctx)
	if err != nil {
		return nil, err
	}
	waiting := map[string][]string{}
	for _, group := range explain.GroupAnswers(answers) {
		for i := range group.First.Remedies {
			edits := group.First.Remedies[i].Edits
			if len(edits) != 1 || edits[0].Path != "/status/allocation" {
				continue
			}
			for _, name := range group.Names {
				waiting[edits[0].Object] = append(waiting[edits[0].Object], whatif.Object(api.KindPod, group.First.Target.Namespace, name))
			}
		}
	}
	var found []api.Finding
	for _, claim := range slices.Sorted(maps.Keys(waiting)) {
		pods := waiting[claim]
		if len(pods) < queueLength {
			continue
		}
		namespaced := strings.TrimPrefix(claim, api.KindClaim+"/")
		namespace, name, _ := strings.Cut(namespaced, "/")
		found = append(found, api.Finding{
			Objects:  append([]string{claim}, pods...),
			Message:  fmt.Sprintf("%d pods wait for the devices of claim %s", len(pods), namespaced),
			Evidence: []api.Evidence{{Object: claim, Path: "status.allocation", Found: "allocated", Required: "released"}},
			Remedy: &api.NextStep{
				Actor: api.ActorUser, Text: "see who uses the claim",
				Commands: []string{"kubectl dra tree " + shell.Quote("claim/"+name) + " -n " + shell.Quote(namespace)},
			},
		})
	}
	return found, nil
}

// explained is the way to the whole answer for a pod.
func explained(namespace, name string) *api.NextStep {
	return &api.NextStep{
		Actor: api.ActorUser, Text: "see what makes it fit",
		Commands: []string{"kubectl dra why " + shell.Quote("pod/"+name) + " -n " + shell.Quote(namespace)},
	}
}

// explainWaiting answers for the pods that wait for devices.
func explainWaiting(ctx context.Context, in *cluster) ([]*api.Explanation, error) {
	var targets []explain.Options
	for _, pod := range in.snap.Pods {
		if lifecycle.Waits(pod) && explain.WantsDevices(in.snap, in.alloc, pod) {
			targets = append(targets, explain.Options{Kind: api.KindPod, Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	answers, err := explain.ExplainEquivalent(ctx, in.alloc, in.snap, targets)
	if err != nil {
		return nil, fmt.Errorf("explain the pods that wait: %w", err)
	}
	var found []*api.Explanation
	for _, answer := range answers {
		if answer.Err == nil {
			found = append(found, answer.Explanation)
		}
	}
	return found, nil
}

func findBlockedPods(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, pod := range in.blocked() {
		if pod.Unregistered != "" && in.opts.Makes(CodeUnregistered) {
			continue
		}
		o := api.KindPod + "/" + pod.Namespace + "/" + pod.Name
		f := api.Finding{
			Objects:  []string{o},
			Message:  fmt.Sprintf("pod %s/%s, stage %s: %s", pod.Namespace, pod.Name, pod.Stage, pod.Summary),
			Evidence: []api.Evidence{{Object: o, Path: "status", Found: string(pod.Code)}},
			Remedy:   explained(pod.Namespace, pod.Name),
		}
		f.Remedy.Text = "see who can act"
		found = append(found, f)
	}
	return found, nil
}

// tight is the part of a quota, in percent, from which on it is nearly used.
const tight = 90

func findTightQuotas(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, quota := range in.snap.Quotas {
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			hard, used := quota.Status.Hard[name], quota.Status.Used[name]
			if !countsDevices(in, name) || hard.IsZero() || used.AsApproximateFloat64()*100 < hard.AsApproximateFloat64()*tight {
				continue
			}
			f := api.Finding{
				Objects:  []string{object(kindQuota, quota)},
				Message:  fmt.Sprintf("quota %s of namespace %s: %s of %s %s used", quota.Name, quota.Namespace, used.String(), hard.String(), name),
				Evidence: []api.Evidence{{Object: object(kindQuota, quota), Path: "status.used[" + string(name) + "]", Found: used.String(), Required: "less than " + hard.String()}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "raise the quota, or delete claims that are not used"},
			}
			if used.Cmp(hard) >= 0 {
				f.Severity = api.SeverityWarning
			}
			found = append(found, f)
		}
	}
	return found, nil
}

// countsDevices reports whether a quota of a resource counts claims or devices.
func countsDevices(in *cluster, name corev1.ResourceName) bool {
	extended, requested := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return name == admission.ClaimCount || strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass) ||
		strings.HasPrefix(string(name), corev1.ResourceImplicitExtendedClaimsPerClass) ||
		requested && in.facts.Claims.ClassOf(corev1.ResourceName(extended)) != nil
}
