// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"

	"charm.land/bubbles/v2/key"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// TestTabAt finds the view whose key is drawn at a place, at any width.
func TestTabAt(t *testing.T) {
	l := widget.NewLook(func(string) string { return "" })
	counts := map[views.ID]int{views.Pending: 59, views.Causes: 2}
	for _, width := range []int{30, 80, 200} {
		for shown := views.Overview; shown <= views.Teams; shown++ {
			if line := tabLine(&l, shown, counts, width); width >= 80 && (!strings.Contains(line, ":59") || !strings.Contains(line, ":2")) {
				t.Errorf("%d columns do not count pods and causes: %q", width, line)
			}
			// A number may have the digit of a key.
			line := ansi.Strip(tabLine(&l, shown, nil, width))
			for id := views.Overview; id <= views.Teams; id++ {
				before, _, found := strings.Cut(line, id.Key())
				at := ansi.StringWidth(before)
				if !found {
					t.Fatalf("%d columns have no key of %s: %q", width, id, line)
				}
				if got, ok := tabAt(shown, nil, width, at); !ok || got != id {
					t.Errorf("%d columns: place %d of %q is %v, want %s", width, at, line, got, id)
				}
			}
			if _, ok := tabAt(shown, counts, width, 199); ok && width < 200 {
				t.Errorf("there is a view behind %q", line)
			}
		}
	}
}

// TestTabsKeepNumbers leaves out names rather than numbers, or parts of either.
func TestTabsKeepNumbers(t *testing.T) {
	l := widget.NewLook(func(string) string { return "" })
	counts := map[views.ID]int{views.Pending: 12000, views.Causes: 123}
	for width, want := range map[int]string{
		100: "1over│[2 nodes]│3pool│4dev│5claim│6pending:12,000│7class│8taint│9causes:123│0team",
		80:  "1over│[2 nodes]│3pool│4dev│5claim│6pending:12,000│7class│8taint│9causes:123│0",
		60:  "1over│[2 nodes]│3pool│4│5│6pending:12,000│7│8│9causes:123│0",
		30:  "1│[2 nodes]│3│4│5│6│7│8│9│0",
	} {
		if got := ansi.Strip(tabLine(&l, views.Nodes, counts, width)); got != want {
			t.Errorf("%d columns have %q, want %q", width, got, want)
		}
	}
}

// TestFileKeepsItsName cuts a path in front, at a folder where that leaves its name.
func TestFileKeepsItsName(t *testing.T) {
	l := widget.NewLook(func(string) string { return "UTF-8" })
	const path = "file /var/tmp/incident-4711/snapshots/prod.yaml"
	for _, test := range []struct {
		context, namespace string
		width              int
		want               string
	}{
		{"", "", 0, "kubectl dra top  " + path},
		{"", "", 64, "kubectl dra top  " + path},
		{"", "", 60, "kubectl dra top  file …/incident-4711/snapshots/prod.yaml"},
		{"", "ml", 60, "kubectl dra top  file …/snapshots/prod.yaml  namespace ml"},
		{"", "", 30, "kubectl dra top  file …od.yaml"},
		{"prod", "", 60, "kubectl dra top  prod  " + path},
	} {
		if got := ansi.Strip(clusterTitle(&l, test.context, path, test.namespace, test.width)); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

// TestPathShowsWhatItLeavesOut leaves out where one came from, screen by screen.
func TestPathShowsWhatItLeavesOut(t *testing.T) {
	l := widget.NewLook(func(string) string { return "" })
	titles := []string{"classes", "pools of class gpu", "devices of pool gpu-09"}
	for width, want := range map[int]string{
		60: "classes > pools of class gpu > devices of pool gpu-09",
		50: "… > pools of class gpu > devices of pool gpu-09",
		30: "… > devices of pool gpu-09",
		12: "…pool gpu-09",
	} {
		if got := strings.TrimSpace(ansi.Strip(pathLine(&l, titles, width))); got != want {
			t.Errorf("%d columns have %q, want %q", width, got, want)
		}
		if got := ansi.StringWidth(pathLine(&l, titles, width)); got != width {
			t.Errorf("%d columns are %d wide", width, got)
		}
	}
}

// TestKeysFit keeps the way out on every width.
func TestKeysFit(t *testing.T) {
	l := widget.NewLook(func(string) string { return "" })
	var bindings []key.Binding
	for _, help := range [][2]string{{"enter", "open"}, {"w", "why"}, {"/", "filter"}, {"?", "keys"}, {"q", "quit"}} {
		bindings = append(bindings, key.NewBinding(key.WithKeys(help[0]), key.WithHelp(help[0], help[1])))
	}
	for width, want := range map[int]string{80: "enter open  w why  / filter  ? keys  q quit", 30: "enter open  ? keys  q quit", 16: "? keys  q quit"} {
		if got := ansi.Strip(keyLine(&l, bindings, width)); got != want {
			t.Errorf("%d columns have %q, want %q", width, got, want)
		}
	}
}
