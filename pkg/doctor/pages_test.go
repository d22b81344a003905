// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
)

const indexPage = "README.md"

// TestPages compares docs/checks, a page for each check, with what the checks say of
// themselves. With -update it is written again.
func TestPages(t *testing.T) {
	pages := map[string]string{indexPage: index()}
	for _, check := range Checks() {
		pages[check.Code+".md"] = page(&check)
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

func index() string {
	var b strings.Builder
	b.WriteString("# Checks\n\nWhat [`kubectl dra doctor`](../cli/doctor.md) looks for. Codes are stable: they are\nadded, never renamed.\n")
	for _, group := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| code | severity | what |\n|---|---|---|\n", group.Title)
		for _, check := range Checks() {
			if strings.HasPrefix(check.Code, "DRA"+group.Number) {
				fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", check.Code, check.Code, check.Severity, check.Title)
			}
		}
	}
	return b.String()
}

func page(check *Check) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\nSeverity: %s\n\n%s\n\n## What to do\n\n%s\n", check.Code, check.Title, check.Severity, check.About, check.Advice)
	if len(check.Needs) > 0 {
		b.WriteString("\n## What it needs\n\nThe check is made only if these can be listed in all namespaces:\n\n")
		for _, resource := range check.Needs {
			fmt.Fprintf(&b, "- `%s`\n", resource)
		}
	}
	fmt.Fprintf(&b, "\nTo suppress it for one object:\n\n```\nkubectl annotate TYPE NAME %s=%s\n```\n", IgnoreAnnotation, check.Code)
	return b.String()
}
