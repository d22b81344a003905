// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/lint"
)

const checksIndex = "README.md"

// describedCheck is what a check says of itself.
type describedCheck struct {
	code, title   string
	severity      api.Severity
	about, advice string
	needs         []string
}

// describedVerb is a verb that makes checks.
type describedVerb struct {
	title, verb string
	groups      []checks.Group
	checks      []describedCheck
}

func describedVerbs() []describedVerb {
	d := describedVerb{title: "Of a cluster", verb: "doctor", groups: doctor.Groups()}
	for _, c := range doctor.Checks() {
		d.checks = append(d.checks, describedCheck{c.Code, c.Title, c.Severity, c.About, c.Advice, c.Needs})
	}
	l := describedVerb{title: "Of manifests", verb: "lint", groups: lint.Groups()}
	for _, c := range lint.Checks() {
		l.checks = append(l.checks, describedCheck{c.Code, c.Title, c.Severity, c.About, c.Advice, nil})
	}
	return []describedVerb{d, l}
}

// TestPagesOfChecks compares docs/checks, a page for each check, with what the checks
// say of themselves. With -update it is written again.
func TestPagesOfChecks(t *testing.T) {
	verbs := describedVerbs()
	pages := map[string]string{checksIndex: checksIndexPage(verbs)}
	for _, v := range verbs {
		for _, check := range v.checks {
			pages[check.code+".md"] = checkPage(&check)
		}
	}
	dir := filepath.Join("..", "..", "docs", "checks")
	have, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if pages[filepath.Base(path)] != "" {
			continue
		}
		if !golden.FlagUpdate() {
			t.Errorf("%s is of no check (run: make docs)", path)
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range pages {
		path := filepath.Join(dir, name)
		if golden.FlagUpdate() {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil {
			t.Errorf("%v (run: make docs)", err)
		} else if string(have) != text {
			t.Errorf("%s is out of date (run: make docs), -have +want:\n%s", path, cmp.Diff(string(have), text))
		}
	}
}

func checksIndexPage(verbs []describedVerb) string {
	var b strings.Builder
	b.WriteString("# Checks\n\nCodes are stable: they are added, never renamed.\n")
	for _, v := range verbs {
		fmt.Fprintf(&b, "\n## %s\n\nWhat [`kubectl dra %s`](../cli/%s.md) looks for.\n", v.title, v.verb, v.verb)
		for _, group := range v.groups {
			fmt.Fprintf(&b, "\n### %s\n\n| code | severity | what |\n|---|---|---|\n", group.Title)
			for _, check := range v.checks {
				if strings.HasPrefix(check.code, "DRA"+group.Number) {
					fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", check.code, check.code, check.severity, check.title)
				}
			}
		}
	}
	return b.String()
}

func checkPage(check *describedCheck) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\nSeverity: %s\n\n%s\n\n## What to do\n\n%s\n", check.code, check.title, check.severity, check.about, check.advice)
	if len(check.needs) > 0 {
		b.WriteString("\n## What it needs\n\nThe check is made only if these can be listed in all namespaces:\n\n")
		for _, resource := range check.needs {
			fmt.Fprintf(&b, "- `%s`\n", resource)
		}
	}
	fmt.Fprintf(&b, "\nTo suppress it for one object:\n\n```\nkubectl annotate TYPE NAME %s=%s\n```\n", checks.IgnoreAnnotation, check.code)
	return b.String()
}
