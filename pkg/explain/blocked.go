// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/obstacle"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/queue"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// meetObstacles turns "it fits" into [api.Blocked] if something else than devices is in the
// way. Where there are no devices either, it is a hint. It returns what to add to
// the summary of a pod that fits.
func (x *builder) meetObstacles(ctx context.Context) (unknown []string, err error) {
	obstacles, unevaluated, err := obstacle.Find(ctx, x.Question, x.target, x.out.Verdict, func(ctx context.Context, pod *corev1.Pod) (*target.Gang, error) {
		return queue.DecideGang(ctx, x.explainer, x.Cluster, pod)
	})
	if err != nil {
		return nil, err
	}
	x.unevaluated = unevaluated
	switch {
	case len(obstacles) == 0:
	case x.out.Verdict == api.Fits, x.out.Verdict == api.Allocated:
		x.out.Verdict, x.out.Code = api.Blocked, obstacles[0].Code
		x.blockedBy = obstacles
		return nil, nil
	case !x.target.VerdictOnly:
		for _, o := range obstacles {
			x.out.Hints = append(x.out.Hints, api.Hint{Text: "Besides, " + o.Reason, Evidence: o.Evidence})
		}
	}
	if x.out.Verdict == api.Fits {
		return x.unknowns(), nil
	}
	return nil, nil
}

// unknowns is what was not evaluated and matters to a pod that fits, and that the
// scheduler said otherwise.
func (x *builder) unknowns() []string {
	pod := x.Pod
	if pod == nil {
		return nil
	}
	var clauses []string
	parts := x.Cluster.Nodes.Unevaluated(pod)
	for _, u := range x.unevaluated {
		if !u.Quiet {
			parts = append(parts, u.String())
		}
	}
	if len(parts) > 0 {
		clauses = append(clauses, "not evaluated: "+strings.Join(parts, ", "))
	}
	for _, gap := range x.Cluster.Snapshot.Gaps {
		if gap.LeftOut && slices.Contains([]string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceTemplates}, gap.Resource) {
			clauses = append(clauses, gap.Reason)
		}
	}
	c := lifecycle.PodCondition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason == corev1.PodReasonSchedulingGated || !snapshot.Waits(pod) || len(pod.Spec.SchedulingGates) > 0 {
		return clauses
	}
	when := c.LastTransitionTime
	if said := lifecycle.SchedulerMessage(x.Cluster.Snapshot, pod); said != nil && said.Time != nil && said.Time.After(when.Time) {
		when = *said.Time
	}
	text := "the scheduler last said otherwise"
	if !when.IsZero() {
		text += fmt.Sprintf(" (%s)", when.UTC().Format(time.RFC3339))
	}
	return append(clauses, text)
}

// blockedLife is where a pod stands that something else than devices blocks.
// What else was found about it is evidence: it is the same thing in other words. So is what
// the API server has said of the same kind when it was to create a pod.
func (x *builder) blockedLife(own lifecycle.Life, said *lifecycle.Blockage) lifecycle.Life {
	blocked := lifecycle.Life{Stage: x.blockedBy[0].Stage}
	for i := range x.blockedBy {
		f := x.blockedBy[i].Finding
		if said != nil && said.Code == x.blockedBy[i].Code {
			f.Reason = ""
		}
		blocked.Findings = append(blocked.Findings, f)
	}
	if pod := x.Pod; pod != nil {
		blocked.Findings = append(blocked.Findings, lifecycle.GateFindings(pod)...)
	}
	for _, f := range own.Findings {
		f.Reason = ""
		blocked.Findings = append(blocked.Findings, f)
	}
	return blocked
}
