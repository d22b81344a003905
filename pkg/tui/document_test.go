// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// TestDocument keeps the screens in docs/top.md what the dashboard shows. The document has a row for
// each view.
func TestDocument(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "top.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A marker, and the capture behind it.
	captures := regexp.MustCompile("(?m)^<!-- view ([a-z]+) -->\n(?:\n```text\n(?s:.*?)\n```\n)?")
	// A page needs no more than one empty line.
	blank := regexp.MustCompile("\n{3,}")
	want := captures.ReplaceAllStringFunc(string(text), func(found string) string {
		name := captures.FindStringSubmatch(found)[1]
		keys, ok := pages()[name]
		var s *session
		switch {
		case ok:
			s = browse(t, 100, 24)
			s.keys(keys...)
		case name == "change":
			s = asked(t, 100, 24)
		default:
			t.Errorf("there is no view %q", name)
			return found
		}
		return "<!-- view " + name + " -->\n\n```text\n" + blank.ReplaceAllString(strings.TrimRight(trimmed(s.screen()), "\n"), "\n\n") + "\n```\n"
	})
	for _, name := range views.Names() {
		if !strings.Contains(string(text), "\n| `"+name+"` | ") {
			t.Errorf("%s has no row about the view %s", path, name)
		}
	}
	if golden.FlagUpdate() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not what the dashboard shows; write it with: go test ./pkg/tui -update (-want +got):\n%s", path, diff)
	}
}
