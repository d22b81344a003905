// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// equalCauses returns two causes that read the same, with another one between them.
func equalCauses() []api.Cause {
	step := func(text string) *api.NextStep { return &api.NextStep{Actor: api.ActorUser, Text: text} }
	return []api.Cause{
		{ID: "a", Severity: api.SeverityError, Message: "Node n1 has 8 available; request gpus needs 16 devices.", NextStep: step("request 8 devices"), Pods: 2, Workloads: 1, Affected: []api.AffectedPods{{Namespace: "ml", Name: "one", Owner: api.Ref("Job", "ml", "train"), Count: 2}}},
		{ID: "b", Severity: api.SeverityError, Message: "pool p is incomplete", NextStep: step("look"), Findings: []string{"DRA1201"}},
		{ID: "c", Severity: api.SeverityError, Message: "Node n1 has 8 available; request gpus needs 16 devices.", NextStep: step("request 8 devices"), Pods: 1, Workloads: 1, Affected: []api.AffectedPods{{Namespace: "dev", Name: "two", Count: 1}}},
	}
}

// TestWaiting draws equal causes once, counts the pods of both, and leaves out causes that no pod of
// the table has. Causes keep the numbers that they have in the status.
func TestWaiting(t *testing.T) {
	rows := []*cause.Row{
		{Namespace: "ml", Name: "job/train (2 pods)", Verdict: api.DoesNotFit, Outlook: api.Never, Stage: api.StageAllocation, AgeSeconds: 60, Causes: []int{0}},
		{Namespace: "dev", Name: "two", Verdict: api.Error, Stage: api.StageAllocation, AgeSeconds: 30, Causes: []int{2}},
		{Namespace: "dev", Name: "five", Verdict: api.Error, Stage: api.StageAllocation, AgeSeconds: 30, Causes: []int{2}, First: &api.Explanation{Code: api.SelectorError}},
		{Namespace: "dev", Name: "eight", Verdict: api.DoesNotFit, Stage: api.StageAllocation, AgeSeconds: 30, Causes: []int{2}, First: &api.Explanation{Code: api.ConstraintUnsatisfiable}},
		{Namespace: "dev", Name: "seven", Verdict: api.Blocked, Stage: api.StagePreparation, AgeSeconds: 30, Causes: []int{2}, First: &api.Explanation{Code: api.PreparationFailed}},
		{Namespace: "dev", Name: "six", Verdict: api.Fits, Stage: api.StageAllocation, AgeSeconds: 30, Node: "n1", Names: []string{"six-0", "six-1"}},
		{Namespace: "dev", Name: "three", Verdict: api.Fits, Stage: api.StageAllocation, Node: "n1", Summary: "The allocator picks n1."},
		{Namespace: "dev", Name: "four", Verdict: api.Fits, Stage: api.StageAllocation, Summary: "For kube-scheduler, but scheduler x decides: The allocator picks n1."},
	}
	var out strings.Builder
	if err := render.Waiting(&out, equalCauses(), rows, render.Options{}); err != nil {
		t.Fatal(err)
	}
	want := `Causes
  1  Node n1 has 8 available; request gpus needs 16 devices.
     3 pods of 2 owners: ml/job/train (2 pods) and 1 more; 2 causes that read the same
     you: request 8 devices

NAMESPACE   NAME                 STAGE         AGE         ANSWER
ml          job/train (2 pods)   Allocation    60s         cause 1: never here
dev         two                  Allocation    30s         cause 1: error
dev         five                 Allocation    30s         cause 1: selector error
dev         eight                Allocation    30s         cause 1: constraint unsatisfiable
dev         seven                Preparation   30s         cause 1: preparation failed
dev         six                  Allocation    30s         fit, n1 first
dev         three                Allocation    <unknown>   fits on n1
dev         four                 Allocation    <unknown>   For kube-scheduler, but scheduler x decides: The allocator picks n1.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestDiagnosisOfCauses draws the causes and their codes in place of errors and warnings.
func TestDiagnosisOfCauses(t *testing.T) {
	d := &api.Diagnosis{Source: "cluster", Checks: []string{"DRA1201", "DRA1401"}, Counts: api.FindingCounts{Error: 1, Info: 1}, Findings: []api.Finding{
		{Code: "DRA1201", Severity: api.SeverityError, Message: "pool p is incomplete"},
		{Code: "DRA1401", Severity: api.SeverityInfo, Message: "claim c is unused"},
	}}
	for _, test := range []struct {
		causes    []api.Cause
		want, not string
	}{
		{equalCauses(), "  2  pool p is incomplete\n     DRA1201\n     you: look\n\nInformation\n  DRA1401  claim c is unused\n", "Errors"},
		{nil, "Errors\n  DRA1201  pool p is incomplete\n", "Causes"},
	} {
		var out strings.Builder
		if err := render.Diagnosis(&out, d, test.causes, render.Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), test.want) || strings.Contains(out.String(), test.not) {
			t.Errorf("got\n%s", out.String())
		}
	}
}
