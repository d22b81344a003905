// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"gotest.tools/v3/golden"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// TestViews compares every view, and the screens behind it, at four sizes, with and without
// colors.
func TestViews(t *testing.T) {
	for name, keys := range pages() {
		t.Run(name, func(t *testing.T) {
			s := browse(t, 80, 24)
			s.keys(keys...)
			for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 120, Height: 40}, {Width: 200, Height: 60}, {Width: 60, Height: 20}} {
				s.send(size)
				s.rest()
				colored := s.model.View().Content
				text := ansi.Strip(colored)
				base := fmt.Sprintf("views/%s-%dx%d", name, size.Width, size.Height)
				golden.Assert(t, trimmed(text), base+".golden")
				golden.Assert(t, strings.ReplaceAll(colored, "\x1b", "␛")+"\n", base+"-color.golden")
				lines := strings.Split(text, "\n")
				if len(lines) != size.Height {
					t.Errorf("%d lines on a screen of %d", len(lines), size.Height)
				}
				for _, line := range lines {
					if width := ansi.StringWidth(line); width > size.Width {
						t.Errorf("a line is %d wide on a screen of %d: %q", width, size.Width, line)
					}
				}
			}
		})
	}
}

// pages returns the keys to every view, and to the screens behind it.
func pages() map[string][]string {
	pages := map[string][]string{
		"why":         {"6", "down", "down", "down", "down", "w"},
		"yaml":        {"5", "down", "down", "down", "y"},
		"tree":        {"5", "down", "down", "down", "t"},
		"help":        {"?"},
		"class-pools": {"7", "down", "down", "enter"},
		"pods":        {"5", "down", "down", "down", "enter"},
		"filter":      {"4", "/", `"!allocated`},
		"where":       {"4", "/", `"--where device.driver == "nic.example.com"`, "enter"},
		"cause":       {"9", "enter"},
		"findings":    {":", `"findings`, "enter"},
		"finding":     {":", `"findings`, "enter", "enter"},
		"map":         {"2", "b", `"rack`, "enter"},
		"find":        {"f", `"gpu03gpu7`},
		"sorted":      {"3", ".", ".", ".", ".", "r"},
	}
	for number, name := range views.Names() {
		pages[name] = []string{views.ID(number).Key()}
	}
	return pages
}

// trimmed returns no blanks at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestASCII draws every view, and the screens behind it, in ASCII alone where the locale
// has no more, and at the same places.
func TestASCII(t *testing.T) {
	ascii := func(name string) string { return map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}[name] }
	for name, keys := range pages() {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Env: ascii}, 80, 24)
			s.keys(keys...)
			for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 200, Height: 60}} {
				s.send(size)
				s.rest()
				view := s.model.View()
				for _, text := range []string{view.Content, view.WindowTitle} {
					if at := strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }); at >= 0 {
						t.Errorf("%q is beyond ASCII:\n%s", text[at:at+3], text)
					}
				}
				for _, line := range s.lines() {
					if len(line) > size.Width {
						t.Errorf("a line is %d wide on a screen of %d: %q", len(line), size.Width, line)
					}
				}
			}
		})
	}
	var text bytes.Buffer
	if err := once(t, Options{Env: ascii}, example(t), 100, &text); err != nil {
		t.Fatal(err)
	}
	if strings.IndexFunc(text.String(), func(r rune) bool { return r > unicode.MaxASCII }) >= 0 {
		t.Errorf("--once prints more than ASCII:\n%s", text.String())
	}
}

// TestOnce prints the overview as text. The clock stands still, so that the time
// for reasons does not run out.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, width := range []int{0, 80} {
			var text bytes.Buffer
			err := once(t, Options{Name: "file examples/cluster"}, example(t), width, &text)
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, text.String(), fmt.Sprintf("once-%d.golden", width))
		}
	})
}
