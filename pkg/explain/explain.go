// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/hints"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Options say what to explain.
type Options = target.Options

// KindDevice is the kind of what [Options.Device] names.
const KindDevice = target.KindDevice

// TargetError means that there is nothing to explain.
type TargetError = target.Error

// Explain reports whether the claims of a target can be allocated, and why. It
// fails with a [*TargetError] if there is no such target, and with the error
// of ctx if that is done before there is an answer.
func Explain(ctx context.Context, snap *snapshot.Snapshot, opts Options) (*api.Explanation, error) {
	return ExplainWith(ctx, cluster.New(snap), opts)
}

// ExplainWith is like [Explain], for a cluster that is asked about several targets.
func ExplainWith(ctx context.Context, c *cluster.Cluster, opts Options) (*api.Explanation, error) {
	t, err := target.Find(c, opts)
	if err != nil {
		return nil, err
	}
	first, _, err := explainTarget(ctx, c, t, withAdvice)
	if err != nil || first.Verdict == api.Fits {
		return first, err
	}
	// One of the other pods that wait for the same claim may get it allocated.
	for _, pod := range t.Others[:min(len(t.Others), maxOthers)] {
		other := *t
		other.UsePod(c, pod)
		other.Instead = true
		answer, _, err := explainTarget(ctx, c, &other, withAdvice)
		if err != nil {
			return nil, err
		}
		if answer.Verdict == api.Fits {
			return answer, nil
		}
	}
	return first, nil
}

// maxOthers limits how many more pods are tried that wait for a claim.
const maxOthers = 4

// explainTarget decides what becomes of a target, and explains it.
func explainTarget(ctx context.Context, c *cluster.Cluster, t *target.Target, d depth) (*api.Explanation, *verdict.Verdict, error) {
	selectors, back := c.Evaluators.Lend()
	defer back()
	v, err := verdict.Decide(ctx, c, t, selectors)
	if err != nil {
		return nil, nil, fmt.Errorf("explain %s: %w", t.Object.Title(), err)
	}
	out, err := newBuilder(v, d).explanation(ctx)
	return out, v, err
}

// explanation runs all steps and puts what they have to say into the summary.
func (x *builder) explanation(ctx context.Context) (*api.Explanation, error) {
	parts, err := x.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("explain %s: %w", x.Target.Object.Title(), err)
	}
	if parts.onNode, err = x.describeNode(ctx); err != nil {
		return nil, err
	}
	if x.Target.Instead && x.out.Verdict == api.Fits {
		parts.instead = x.Pod.Name
	}
	describe := func(d *cluster.Device) (*api.DeviceExplanation, error) {
		return describeDevice(ctx, x.Question, x.out, parts.text(), x.Target.Only, d)
	}
	if x.Target.Device != nil {
		if x.out.Device, err = describe(x.Target.Device); err != nil {
			return nil, err
		}
	}
	for _, d := range x.devices {
		described, err := describe(d)
		if err != nil {
			return nil, err
		}
		x.described = append(x.described, described)
	}
	x.out.Summary, x.out.Headline = parts.sentence(), parts.headline()
	x.out.Code = codeOf(x.out)
	return x.out, nil
}

// run answers from the top down: the facts, the allocator's verdict, other obstacles, gaps,
// the stage of the pod, hints. Each step returns its part of the summary.
func (x *builder) run(ctx context.Context) (*summary, error) {
	describe(x.Verdict, x.out)
	parts := &summary{}
	var err error
	if parts.reason, err = x.ofDevices(ctx); err != nil {
		return nil, err
	}
	parts.unknown = x.obstacles()
	if x.Blocked() {
		// The findings say what is in the way.
		parts.reason = reason{}
	}
	if err := x.findOutlook(ctx); err != nil {
		return nil, err
	}
	x.out.Assumptions = append(x.out.Assumptions, assumptions(x.Verdict, x.out.Verdict)...)
	hasDevices := x.out.Verdict == api.Fits || x.out.Verdict == api.Allocated
	parts.findings = describeStage(x.Verdict, x.out)
	if hasDevices && x.out.Verdict == api.Blocked && x.Target.Creator != nil && x.out.Code != api.NotAdmitted && (&lifecycle.Life{Findings: parts.findings}).HasReason() {
		// Nothing follows by itself: the devices are no reason.
		parts.reason = reason{}
	}
	parts.besides = x.addHints(ctx)
	return parts, x.findWhyHere(ctx)
}

// addHints adds hints.
func (x *builder) addHints(ctx context.Context) hints.Found {
	var found hints.Found
	if x.depth == withAdvice {
		found = hints.Find(x.Question, x.Target.Object, x.out)
		x.out.Hints = append(x.out.Hints, found.Hints...)
		x.out.Hints = x.out.Hints[:min(len(x.out.Hints), hints.Most)]
	}
	x.out.Hints = append(x.out.Hints, hints.OfConfig(ctx, x.Question, x.out)...)
	return found
}

// codeOf returns the dominant reason: the decisive one, or else the reason of the most
// promising nodes.
func codeOf(out *api.Explanation) api.Code {
	switch {
	case out.Verdict == api.Fits, out.Verdict == api.Allocated:
		return ""
	case out.Code == "" && len(out.Nodes) > 0:
		return out.Nodes[0].Code
	default:
		return out.Code
	}
}

// Reason returns why a pod waits, of the answer for it or of what it failed with.
func Reason(e *api.Explanation, err error) api.StuckReason {
	if err != nil {
		return api.StuckReason{Verdict: api.Undetermined, Summary: strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	return api.StuckReason{Verdict: e.Verdict, Code: e.Code, Stage: e.Stage, Summary: e.Summary, Outlook: When(e), Actor: Actor(e)}
}

// Word returns an answer in one word, for tables: the code or, if there is none, the
// verdict.
func Word(e *api.Explanation) string {
	return cmp.Or(string(e.Code), string(e.Verdict))
}

// obstacles says what else than devices is in the way. Where there are no devices either, it is a
// hint. It returns what to add to the summary of a pod that fits.
func (x *builder) obstacles() (unknown []string) {
	if x.Blocked() {
		x.out.Verdict, x.out.Code = api.Blocked, x.Obstacles[0].Code
		return nil
	}
	if x.depth == withAdvice {
		for _, o := range x.Obstacles {
			x.out.Hints = append(x.out.Hints, api.Hint{Text: "Besides, " + o.Reason, Evidence: o.Evidence})
		}
	}
	if x.out.Verdict == api.Fits {
		return unknowns(x.Verdict)
	}
	return nil
}

// unknowns returns the gaps that matter to a pod that fits, and that the scheduler said
// otherwise.
func unknowns(v *verdict.Verdict) []string {
	pod := v.Pod
	if pod == nil {
		return nil
	}
	var clauses []string
	parts := v.Cluster.Nodes.Unevaluated(pod)
	for _, u := range v.Unevaluated {
		if !u.Quiet {
			parts = append(parts, u.String())
		}
	}
	if len(parts) > 0 {
		clauses = append(clauses, "not evaluated: "+strings.Join(parts, ", "))
	}
	for _, gap := range v.Cluster.Snapshot.Gaps {
		if gap.LeftOut && slices.Contains([]string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceTemplates}, gap.Resource) {
			clauses = append(clauses, gap.Reason)
		}
	}
	c := lifecycle.PodCondition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason == corev1.PodReasonSchedulingGated || !snapshot.Waits(pod) || len(pod.Spec.SchedulingGates) > 0 {
		return clauses
	}
	when := c.LastTransitionTime
	if said := lifecycle.SchedulerMessage(v.Cluster.Snapshot, pod); said != nil && said.Time != nil && said.Time.After(when.Time) {
		when = *said.Time
	}
	text := "the scheduler last said otherwise"
	if !when.IsZero() {
		text += fmt.Sprintf(" (%s)", when.UTC().Format(time.RFC3339))
	}
	return append(clauses, text)
}
