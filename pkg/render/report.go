// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// homepage is where the pages of rules stand.
const homepage = "https://github.com/kubectl-dra/kubectl-dra"

// Report lists the checks and findings of a verb, for programs that read the reports of
// linters and of tests.
type Report struct {
	// Verb is the verb that made the report, such as "doctor"; Version is the version of
	// the program.
	Verb, Version string
	// Source names the checked cluster or files in a few words.
	Source string
	// Rules are the checks that were made.
	Rules []Rule
	// Findings are each of one of the rules.
	Findings []api.Finding
	// FailOn is the severity from which on a finding fails.
	FailOn api.Severity
}

// Rule is a check of which findings are.
type Rule struct {
	// Code is stable, Title says in a few words what the check looks for.
	Code, Title string
	// About says what it means, Advice what can be done.
	About, Advice string
	// Page is its page, a path in the repository; it may be empty.
	Page string
	// Severity is the severity of its findings, unless they have their own.
	Severity api.Severity
}

// remedyLines returns what can be done, with the commands, a line for each.
func remedyLines(step *api.NextStep) []string {
	if step == nil {
		return nil
	}
	return append([]string{Actor(step.Actor) + ": " + step.Text}, step.Commands...)
}

// place returns the file of a finding with the known position in it.
func place(f *api.Finding) string {
	switch {
	case f.Line > 0 && f.Column > 0:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	case f.Line > 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return f.File
	}
}

func escapedLines(lines []string) string {
	escaped := make([]string, 0, len(lines))
	for _, line := range lines {
		escaped = append(escaped, EscapeLines(line))
	}
	return strings.Join(escaped, "\n")
}
