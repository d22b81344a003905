// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"

	"github.com/jstemmer/go-junit-report/v2/junit"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TrialsJUnit writes what came of a test as the report of a test suite. Each stage and
// each check of a trial is a test, with its time; so is each trial that was not made,
// as skipped.
func TrialsJUnit(w io.Writer, r *api.TestReport) error {
	suite := junit.Testsuite{Name: "kubectl-dra test"}
	suite.AddProperty("source", Escape(r.Source))
	if r.KubernetesVersion != "" {
		suite.AddProperty("kubernetesVersion", Escape(r.KubernetesVersion))
	}
	var total int64
	for i := range r.Trials {
		total += addTrial(&suite, &r.Trials[i])
	}
	for i := range r.Skipped {
		s := &r.Skipped[i]
		suite.AddTestcase(junit.Testcase{
			Classname: "kubectl-dra.test", Name: Escape(skippedName(s)), Time: "0", Skipped: &junit.Result{Message: Escape(s.Message), Type: string(s.Reason)},
		})
	}
	suite.Time = seconds(total)
	return writeJUnit(w, suite, suite.Time)
}

// addTrial adds the tests of one trial, and returns how many milliseconds it took.
func addTrial(suite *junit.Testsuite, t *api.Trial) int64 {
	var total int64
	name := func(of string) string { return Escape(t.Name + ": " + of) }
	if len(t.Stages)+len(t.Checks) == 0 {
		test := junit.Testcase{Classname: "kubectl-dra.test", Name: Escape(t.Name), Time: "0"}
		judge(&test, t.Result, t.Message, explanationText(t.Explanation))
		suite.AddTestcase(test)
	}
	for _, stage := range t.Stages {
		took := int64(0)
		if stage.Milliseconds != nil {
			took = *stage.Milliseconds
		}
		total += took
		test := junit.Testcase{Classname: "kubectl-dra.test", Name: name(string(stage.Stage)), Time: seconds(took)}
		message := t.Message
		if stage.Result == api.TestUnknown && t.Result == api.TestFailed {
			message = "not reached"
		}
		judge(&test, stage.Result, message, explanationText(t.Explanation))
		suite.AddTestcase(test)
	}
	for i := range t.Checks {
		c := &t.Checks[i]
		test := junit.Testcase{Classname: "kubectl-dra.test", Name: name(string(c.Check)), Time: "0"}
		var lines []string
		for j := range c.Evidence {
			lines = append(lines, evidenceLine(&c.Evidence[j]))
		}
		judge(&test, c.Result, c.Message, lines)
		suite.AddTestcase(test)
	}
	return total
}

// judge marks a test as failed or skipped.
func judge(test *junit.Testcase, result api.TestResult, message string, lines []string) {
	switch result {
	case api.TestFailed:
		test.Failure = &junit.Result{Message: Escape(message), Type: string(result), Data: escapedLines(lines)}
	case api.TestUnknown, api.TestPlanned:
		test.Skipped = &junit.Result{Message: Escape(message), Type: string(result)}
	case api.TestPassed:
	}
}

// explanationText returns an explanation in a few lines.
func explanationText(e *api.Explanation) []string {
	if e == nil {
		return nil
	}
	lines := []string{e.Summary}
	for i := range e.StageEvidence {
		lines = append(lines, evidenceLine(&e.StageEvidence[i]))
	}
	for i := range e.NextSteps {
		lines = append(lines, remedyLines(&e.NextSteps[i])...)
	}
	return lines
}

func seconds(milliseconds int64) string {
	return fmt.Sprintf("%d.%03d", milliseconds/1000, milliseconds%1000)
}

func skippedName(s *api.SkippedTrial) string {
	name := trialSubject(s.Class, s.File)
	if s.Node != "" {
		name += " on " + s.Node
	}
	return name
}
