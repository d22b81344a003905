// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHistoryIsKept enters expressions in two prompts, one after the other.
func TestHistoryIsKept(t *testing.T) {
	saved := savedExpressions{filepath.Join(t.TempDir(), "a", "b", "history")}
	enter := func(text string) *promptSession {
		s := newPromptSession(t, 80)
		s.model.opts.Saved, s.model.history = saved, saved.history()
		s.keys("'"+text, "enter")
		s.settle()
		return s
	}
	enter("true")
	enter("false")
	s := enter("false")
	s.keys("up", "up")
	if got := s.model.input.Value(); got != "true" {
		t.Errorf("%q comes back, want true", got)
	}
	info, err := os.Stat(saved.path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %s", info.Mode())
	}
}

// TestHistoryIsBounded covers files that are too long or that no prompt wrote.
func TestHistoryIsBounded(t *testing.T) {
	saved := savedExpressions{filepath.Join(t.TempDir(), "history")}
	var text strings.Builder
	for i := range 2*maxSaved + 1 {
		fmt.Fprintf(&text, "%d == 1\n", i)
	}
	text.WriteString("\x1b[2J\n\xff\n\n" + strings.Repeat("x", maxSavedLine+1) + "\n")
	if err := os.WriteFile(saved.path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h := saved.history()
		if last := h.lines[len(h.lines)-1]; len(h.lines) != maxSaved || h.at != maxSaved || last != fmt.Sprintf("%d == 1", 2*maxSaved) {
			t.Errorf("%d lines at %d, the last is %q", len(h.lines), h.at, last)
		}
	}
	if got := saved.lines(); len(got) != maxSaved {
		t.Errorf("%d lines are left in the file, want %d", len(got), maxSaved)
	}
	if err := saved.add("true"); err != nil || !slices.Contains(saved.lines(), "true") {
		t.Errorf("not saved after that: %v", err)
	}
}

// TestHistoryNeedsNoFile covers no place for the file, and a file that cannot be written.
func TestHistoryNeedsNoFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, saved := range []savedExpressions{{}, {filepath.Join(file, "history")}, {os.DevNull}} {
		s := newPromptSession(t, 80)
		s.model.opts.Saved, s.model.history = saved, saved.history()
		s.keys("'true", "enter", "up")
		s.settle()
		if got := s.model.input.Value(); got != "true" || s.model.Err() != nil {
			t.Errorf("%s: %q comes back, error %v", saved.path, got, s.model.Err())
		}
	}
}

func TestSavedOfUser(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	for state, want := range map[string]string{dir: dir, "relative": filepath.Join(dir, ".local", "state"), "": filepath.Join(dir, ".local", "state")} {
		t.Setenv("XDG_STATE_HOME", state)
		if got := savedOfUser().path; got != filepath.Join(want, "kubectl-dra", "cel-history") {
			t.Errorf("XDG_STATE_HOME %q: %s", state, got)
		}
	}
}
