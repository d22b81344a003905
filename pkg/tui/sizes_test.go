// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// TestTinyTerminal draws no more than there is room for, and does not fail, however small the
// terminal is.
func TestTinyTerminal(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true}, 80, 24)
	keys := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "?", "esc", "f", "esc", ":", "esc", "/", "esc", "s", "esc", "6", "w", "esc", "t", "esc", "y", "esc", "2", "v", "U", "v", "1", "enter", "esc"}
	for _, size := range []tea.WindowSizeMsg{{Width: 20, Height: 5}, {Width: 9, Height: 3}, {Width: 1, Height: 1}, {Width: 200, Height: 4}, {Width: 3, Height: 60}} {
		s.send(size)
		for _, key := range keys {
			s.keys(key)
			for _, line := range strings.Split(s.screen(), "\n") {
				if got := ansi.StringWidth(line); size.Width >= 20 && got > size.Width {
					t.Errorf("%dx%d, key %s: a line is %d wide: %q", size.Width, size.Height, key, got, line)
				}
			}
			if got := strings.Count(s.screen(), "\n") + 1; size.Height >= 5 && got > size.Height {
				t.Errorf("%dx%d, key %s: %d lines\n%s", size.Width, size.Height, key, got, s.screen())
			}
		}
	}
}
