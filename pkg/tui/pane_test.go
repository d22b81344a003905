// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// paneAt returns the column at which the pane begins, 0 if there is none beside the list.
func (s *session) paneAt() int {
	line := s.lines()[headLines+3]
	before, _, found := strings.Cut(line, s.model.look.Glyphs.Between)
	if !found {
		return 0
	}
	return ansi.StringWidth(before)
}

// TestPaneOpens shows a pane by itself where reasons are, and elsewhere on large terminals only.
func TestPaneOpens(t *testing.T) {
	for _, width := range []int{120, 160} {
		s := browse(t, width, 40)
		for key, want := range map[string]bool{"1": width >= paneWide, "3": width >= paneWide, "4": width >= paneWide, "5": width >= paneWide, "6": true, "7": width >= paneWide, "8": width >= paneWide, "9": width >= paneWide, "0": false} {
			s.keys(key)
			if s.paneAt() > 0 != want {
				t.Errorf("%d columns, view %s: a pane at %d, want one: %v", width, key, s.paneAt(), want)
			}
		}
	}
}

// TestPaneKeys opens, closes and sizes the pane of a view, which keeps it, and leaves others as they
// are.
func TestPaneKeys(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("4", "p")
	at := s.paneAt()
	if at == 0 {
		t.Fatal("no pane opened")
	}
	s.shows("Attributes")
	s.keys(">", ">")
	if wider := s.paneAt(); wider != at-24 {
		t.Errorf("the pane begins at %d, before at %d", wider, at)
	}
	s.keys(">", ">", ">", ">", ">", "<")
	if got := s.paneAt(); got <= 0 {
		t.Errorf("the pane begins at %d", got)
	}
	s.keys("3")
	if s.paneAt() != 0 {
		t.Error("another view has a pane, too")
	}
	s.keys("4")
	if s.paneAt() == 0 {
		t.Error("the pane is gone")
	}
	s.keys("p", "6", "p")
	if s.paneAt() != 0 {
		t.Error("the pane stays")
	}
	s.keys("4")
	if s.paneAt() != 0 {
		t.Error("the pane of devices is back")
	}
	s.keys("1", "p")
	if s.paneAt() == 0 {
		t.Error("the first page has no pane")
	}
}

// TestPaneUnder opens the pane under the list where there is no room beside it.
func TestPaneUnder(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("4")
	s.lacks("Attributes")
	s.keys("p")
	s.shows("Attributes")
	s.keys("1", "p")
	s.shows("a pane needs 110 columns")
}

// TestPaneOfSentences opens under the list, unless it is very wide: the list has whole sentences then.
func TestPaneOfSentences(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("9")
	s.shows("Node gpu-03 has 8 available, at most 4 with the same pcieRoot; request gpus needs 8 devices.", "ConstraintUnsatisfiable")
}

// TestPaneOfFreeLines opens in the lines that a list leaves on a low screen, but not in a few of
// them.
func TestPaneOfFreeLines(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("6")
	s.shows("1 you   request 4 devices instead of 8 in request gpus (fits on gpu-03)", "1/10 rows, 10 pods")
	s.keys("9")
	s.shows("you: request 4 devices")
	s.lacks("ConstraintUnsatisfiable")
	s.keys("6", "p")
	s.lacks("1 you   request 4 devices")
}

// TestRemarkInFreeLines writes what there is to say about a row in the lines below the list, whole,
// and in the last one only where the list needs all lines.
func TestRemarkInFreeLines(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("6", "p")
	s.shows("request gpus\nneeds 8 devices.\nyou: request 4 devices instead of 8 in request gpus (fits on gpu-03)\n1/10 rows, 10 pods   l shows more columns\n")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 17})
	s.shows("1/10 rows, 10 pods   you: request 4 devices")
}

// TestPaneSaysMore says in a pane what the row does not.
func TestPaneSaysMore(t *testing.T) {
	s := browse(t, 200, 60)
	s.keys("3")
	row := s.lines()[headLines+1]
	if !strings.Contains(row, "gpu.example.com") && !strings.Contains(row, "fabric.example.com") {
		t.Fatalf("the row is %q", row)
	}
	s.lacks("State      Usable", "State    Usable")
}

// TestPaneOpensWhereNoneShows opens a pane with the first key where the list leaves no room for it by
// itself.
func TestPaneOpensWhereNoneShows(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("9")
	s.lacks("────")
	s.shows("at most 4 with the same pcieRoot; request gpus", "you: request 4 devices")
	s.keys("p")
	s.shows("────")
	s.keys("p")
	s.lacks("────")
}

// TestMapNamesItsOrder names the order of the map on a small terminal, too.
func TestMapNamesItsOrder(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("2", "v")
	s.lacks("first")
	s.keys("X")
	s.shows("most trouble first")
}
