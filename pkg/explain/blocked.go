// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
