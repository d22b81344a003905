// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// whyAnswers collects the answers about several targets.
type whyAnswers struct {
	explanations []*api.Explanation
	failures     []error
	// skipped are the objects of the files that are no targets.
	skipped []string
}

func (a *whyAnswers) add(e *api.Explanation, err error) {
	if err != nil {
		a.fail(err)
		return
	}
	a.explanations = append(a.explanations, e)
}

func (a *whyAnswers) fail(err error) { a.failures = append(a.failures, err) }

// outcome returns the error with the worst exit code. All other failures are passed to
// report.
func (a *whyAnswers) outcome(report func(error)) error {
	if len(a.failures) == 1 && len(a.explanations) == 0 {
		return a.failures[0]
	}
	code := cli.ExitFits
	for _, err := range a.failures {
		report(err)
		code = cli.Worse(code, cli.ExitCode(err))
	}
	for _, e := range a.explanations {
		code = cli.Worse(code, cli.VerdictCode(e.Verdict))
	}
	if code == cli.ExitFits {
		return nil
	}
	return &cli.OutcomeError{Code: code}
}
