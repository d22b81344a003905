// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/lint"
)

const checksIndex = "README.md"

// describedVerb is a verb that makes checks.
type describedVerb struct {
	title, verb string
	groups      []checks.Group
	checks      []checks.Description
}

func describedVerbs() []describedVerb {
	return []describedVerb{
		{"Of a cluster", "doctor", doctor.Groups(), doctor.Descriptions()},
		{"Of manifests", "lint", lint.Groups(), lint.Descriptions()},
	}
}

// TestPagesOfChecks compares docs/checks, a page for each check, with what the checks
// say of themselves. With -update it is written again.
func TestPagesOfChecks(t *testing.T) {
	verbs := describedVerbs()
	pages := map[string]string{checksIndex: checksIndexPage(verbs)}
	for _, v := range verbs {
		for _, check := range v.checks {
			pages[check.Code+".md"] = checkPage(&check)
		}
	}
	comparePages(t, "checks", "check", pages)
}

func checksIndexPage(verbs []describedVerb) string {
	var b strings.Builder
	b.WriteString("# Checks\n\nCodes are stable: they are added, never renamed.\n")
	for _, v := range verbs {
		fmt.Fprintf(&b, "\n## %s\n\nWhat [`kubectl dra %s`](../cli/%s.md) looks for.\n", v.title, v.verb, v.verb)
		for _, group := range v.groups {
			fmt.Fprintf(&b, "\n### %s\n\n| code | severity | what |\n|---|---|---|\n", group.Title)
			for _, check := range v.checks {
				if strings.HasPrefix(check.Code, "DRA"+group.Number) {
					fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", check.Code, check.Code, check.Severity, check.Title)
				}
			}
		}
	}
	return b.String()
}

func checkPage(check *checks.Description) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\nSeverity: %s\n\n%s\n\n## What to do\n\n%s\n", check.Code, check.Title, check.Severity, check.About, check.Advice)
	if len(check.Needs) > 0 {
		b.WriteString("\n## What it needs\n\nThe check is made only if these can be listed in all namespaces:\n\n")
		for _, resource := range check.Needs {
			fmt.Fprintf(&b, "- `%s`\n", resource)
		}
	}
	fmt.Fprintf(&b, "\nTo suppress it for one object:\n\n```\nkubectl annotate TYPE NAME %s=%s\n```\n", checks.IgnoreAnnotation, check.Code)
	return b.String()
}
