// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"

	"github.com/jstemmer/go-junit-report/v2/junit"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// JUnit writes a report as a test suite. A rule without findings is a passed test. Each
// finding is a test: a failed one from the severity of FailOn on, a skipped one if it could
// not be checked.
func JUnit(w io.Writer, r *Report) error {
	suite := junit.Testsuite{Name: "kubectl-dra " + r.Verb, Time: "0"}
	suite.AddProperty("source", Escape(r.Source))
	if r.Version != "" {
		suite.AddProperty("version", Escape(r.Version))
	}
	for i := range r.Rules {
		rule := &r.Rules[i]
		test := junit.Testcase{Classname: "kubectl-dra." + r.Verb, Name: rule.Code + " " + rule.Title, Time: "0"}
		passes := true
		for k := range r.Findings {
			if f := &r.Findings[k]; f.Code == rule.Code {
				passes = false
				suite.AddTestcase(findingInJUnit(test, f, fails(f.Severity, r.FailOn)))
			}
		}
		if passes {
			suite.AddTestcase(test)
		}
	}
	return writeJUnit(w, suite, "0")
}

// writeJUnit writes a report with one suite, which took so many seconds.
func writeJUnit(w io.Writer, suite junit.Testsuite, seconds string) error {
	suites := junit.Testsuites{Time: seconds}
	suites.AddSuite(suite)
	if _, err := io.WriteString(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"); err != nil {
		return fmt.Errorf("print JUnit: %w", err)
	}
	if err := suites.WriteXML(w); err != nil {
		return fmt.Errorf("print JUnit: %w", err)
	}
	return nil
}

func findingInJUnit(test junit.Testcase, f *api.Finding, failure bool) junit.Testcase {
	if at := place(f); at != "" {
		test.Name += " " + Escape(at)
	} else if len(f.Objects) > 0 {
		test.Name += " " + Escape(f.Objects[0].String())
	}
	message := Escape(f.Message)
	if f.Severity == api.SeverityUnknown {
		test.Skipped = &junit.Result{Message: message}
		return test
	}
	var lines []string
	if at := place(f); at != "" {
		lines = append(lines, at)
	}
	for i := range f.Evidence {
		lines = append(lines, evidenceLine(&f.Evidence[i]))
	}
	lines = append(lines, remedyLines(f.Remedy)...)
	if failure {
		test.Failure = &junit.Result{Message: message, Type: string(f.Severity), Data: escapedLines(lines)}
	} else {
		test.SystemOut = &junit.Output{Data: escapedLines(append([]string{string(f.Severity) + ": " + f.Message}, lines...))}
	}
	return test
}

// fails reports whether a severity is that bad, or worse.
func fails(severity, from api.Severity) bool {
	order := severitySections()
	rank := func(s api.Severity) int {
		return slices.IndexFunc(order, func(section severitySection) bool { return section.severity == s })
	}
	return rank(severity) <= rank(from)
}
