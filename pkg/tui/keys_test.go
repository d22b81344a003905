// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// TestUnknownKey says that a key does nothing, on every kind of screen.
func TestUnknownKey(t *testing.T) {
	s := browse(t, 80, 24)
	for _, keys := range [][]string{{"1", "X"}, {"4", "X"}, {"5", "y", "X"}, {"1", "h"}} {
		s.keys(keys...)
		s.shows(keys[len(keys)-1] + " does nothing here; ? has the keys")
		s.keys("j")
		s.lacks("does nothing")
	}
}

// TestEscapes goes back with backspace, and two steps with Escape pressed twice at
// once, which terminals send as one key.
func TestEscapes(t *testing.T) {
	s := browse(t, 120, 30)
	s.keys("7", "down", "down", "enter", "enter")
	s.shows("devices of pool")
	s.keys("backspace")
	s.shows("pools of class")
	s.keys("/", `"gpu-0`)
	s.shows("filter: gpu-0")
	s.send(tea.KeyPressMsg{Code: tea.KeyEscape, Mod: tea.ModAlt})
	s.lacks("filter: ", "pools of class")
	s.shows("[7 classes]")
}

// TestFilterWords covers rows with all of several words, in whatever columns.
func TestFilterWords(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("4", "/", `"gpu-02 research`, "enter")
	s.shows("1/6 of 104 devices")
	s.keys("/", `" ~^nic !nic-1`, "enter")
	s.shows("1/1 of 104 devices", "nic-0")
}

// TestSortGoesUp selects the first row of a new order.
func TestSortGoesUp(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("4", "end", ".")
	s.shows("1/104 devices")
	if !strings.HasPrefix(s.lines()[3], "›") {
		t.Errorf("the first row is not selected:\n%s", s.screen())
	}
	s.keys("end", "r")
	s.shows("1/104 devices")
}

// TestCompletionEnds does not offer namespaces where a filter is typed.
func TestCompletionEnds(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("5", "n", `"vis`, "esc", "/", `"vis`, "tab", "enter")
	s.shows("filter vis")
	s.lacks("filter vision")
}

// TestSelectedColors keeps the colors of the selected row.
func TestSelectedColors(t *testing.T) {
	s := browse(t, 100, 30)
	s.keys("5")
	for _, line := range strings.Split(s.model.View().Content, "\n") {
		if strings.Contains(line, "›") {
			if !strings.Contains(line, "\x1b[36mReserved") {
				t.Errorf("no color in %q", line)
			}
			if at := strings.Index(line, "decode-0-ext"); !strings.Contains(line[:at], "\x1b[7m") || strings.Contains(strings.ReplaceAll(line, "\x1b[m\x1b[7m", ""), "\x1b[m ") {
				t.Errorf("not marked as a whole: %q", line)
			}
		}
	}
}

// TestHelpFits covers all keys of every view on a screen of 80x24.
func TestHelpFits(t *testing.T) {
	for number := range views.Names() {
		s := browse(t, 80, 24)
		s.keys(views.ID(number).Key(), "?")
		s.shows(views.Names()[number]+" > keys", "quit", "unhealthy")
		s.lacks("   lines 1 to ")
		s.keys("?")
		s.lacks(" > keys")
	}
}

// TestGoTo goes to views by parts of their names, from wherever one is.
func TestGoTo(t *testing.T) {
	s := browse(t, 120, 30)
	s.keys("7", "enter", ":", `"tain`, "enter")
	s.shows("[8 taints]")
	s.keys(":", `"pods`, "enter")
	s.shows("taints > pods", "ablation-0")
	s.keys(":", "esc")
	s.shows("taints > pods")
	s.keys("esc")
	s.shows("[8 taints]")
	s.keys(":", `"q`, "enter")
	if !s.quit {
		t.Error(":q does not end the dashboard")
	}
}

// TestPages moves by pages with the keys of a pager, too.
func TestPages(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("4")
	first := s.selected()
	s.keys("ctrl+d")
	s.shows("19/104 devices")
	s.keys("ctrl+u")
	if got := s.selected(); got != first {
		t.Errorf("the selected row is %q, want %q", got, first)
	}
}

// TestFind finds an object of any kind, whatever is shown.
func TestFind(t *testing.T) {
	for query, want := range map[string][]string{
		"gpu-03/gpu-7": {"devices > devices", "gpu-03"}, "pretrain0gpus": {"devices > claims", "pretrain-0-gpus"}, "research/sweep-1": {"devices > pods", "sweep-1"},
		"mig-02": {"devices > nodes", "mig-02"}, "decoder.ex": {"devices > classes", "decoder.example.com"}, "nic.example.com/gpu-05": {"devices > pools", "gpu-05"},
	} {
		s := browse(t, 120, 40)
		s.keys("5", "/", `"vision`, "enter", "4", "/", `"nic`, "enter", "down")
		before := s.selected()
		s.keys("f", `"`+query, "enter")
		s.shows(want[0])
		if row := s.selected(); !strings.Contains(row, want[1]) {
			t.Errorf("%q selects %q", query, row)
		}
		s.keys("esc")
		s.shows("[4 devices]", "filter nic")
		if row := s.selected(); row != before {
			t.Errorf("after %q, esc selects %q, want %q", query, row, before)
		}
	}
	s := browse(t, 120, 40)
	s.keys("f", `"cpu-01`, "enter")
	s.shows("node cpu-01 has no devices", "YAML of Node cpu-01", "kind: Node")
}

// TestSortPicked sorts by a column that is picked by its name, and back.
func TestSortPicked(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("3", "end", "s", `"tot`, "enter")
	s.shows("TOTAL ▼", "by Total", "1/")
	if row := s.selected(); !strings.Contains(row, "mig-01") {
		t.Errorf("the first row is %q, want the largest number", row)
	}
	s.keys("s", `"dri`, "enter")
	s.shows("DRIVER ▲")
	s.keys("s", `"order of`, "enter")
	s.lacks("▲", "▼")
}

// TestWhyInKeyLine covers w in the line of keys wherever it explains the selected row, at
// any width, and on the overview.
func TestWhyInKeyLine(t *testing.T) {
	s := browse(t, 60, 24)
	// These rows can be explained.
	filters := map[views.ID]string{views.Devices: `"state:allocated`, views.Findings: `"DRA1601`}
	for _, width := range []int{60, 80, 120} {
		s.send(tea.WindowSizeMsg{Width: width, Height: 24})
		for number, name := range views.Names() {
			id := views.ID(number)
			s.keys(id.Key())
			if filters[id] != "" {
				s.keys("/", filters[id], "enter")
			}
			foot := s.lines()[23]
			s.keys("w")
			works := strings.Contains(s.lines()[1], "why ")
			if told := strings.Contains(foot, "w why"); works != told {
				t.Errorf("%s, %d wide: w works: %t, but the line is %q", name, width, works, foot)
			}
			if works {
				s.keys("esc")
			}
			if filters[id] != "" {
				s.keys("esc")
			}
		}
	}
}

// TestWhyOfFirstPage explains causes, too, and says where there is nothing to
// explain.
func TestWhyOfFirstPage(t *testing.T) {
	s := browse(t, 120, 50)
	s.keys("home", "w")
	s.shows("no claim or pod to explain in this row")
	for !strings.Contains(s.selected(), "pretrain-0") {
		s.keys("down")
	}
	s.keys("c")
	s.shows("choose", "request 4 devices instead of 8")
	s.keys("enter")
	s.shows("sent to the clipboard of the terminal: kubectl get resourceclaimtemplate eight-gpus")
	s.keys("w")
	s.shows("overview > why Pod research/pretrain-0")
	s.keys("esc")
	for !strings.Contains(s.selected(), "taint nic.example.com/link=down:NoSchedule") {
		s.keys("up")
	}
	s.keys("w")
	s.shows("overview > why Pod storage/replicate-0")
	s.keys("esc", "home", "c")
	s.shows("no command is known that would help")
}

// TestNamesOfViews stand beside each other on 80 columns, whichever is shown, and keep their
// keys on 60.
func TestNamesOfViews(t *testing.T) {
	s := browse(t, 80, 24)
	for id, name := range views.Names() {
		s.keys(views.ID(id).Key())
		tabs := s.lines()[1]
		if !strings.Contains(tabs, "["+views.ID(id).Key()+" "+name) {
			t.Errorf("the view shown has not its whole name: %s", tabs)
		}
		for other, short := range views.ShortNames() {
			if other != id && !strings.Contains(tabs, views.ID(other).Key()+short) {
				t.Errorf("%s is missing: %s", short, tabs)
			}
		}
	}
	s.send(tea.WindowSizeMsg{Width: 60, Height: 20})
	s.shows("1over│2node│3pool│4│5│6pending:10│7│8│9causes:13│[0 teams]")
}

// TestColumnsOnTheRight expects a mark for columns without room.
func TestColumnsOnTheRight(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("3", "down")
	if titles := s.lines()[2]; !strings.HasSuffix(titles, "…") {
		t.Errorf("it does not show that there are more columns: %s", titles)
	}
	s.shows("l shows more columns")
	for range 8 {
		s.keys("l")
	}
	if titles := s.lines()[2]; strings.HasSuffix(titles, "…") {
		t.Errorf("it shows more columns than there are: %s", titles)
	}
	s.lacks("more columns")
}

// TestHelpSearch finds keys by what they do or how they are called, and leaves the help as
// it was when nothing is typed.
func TestHelpSearch(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("6", "?")
	s.shows("type to search the keys", "copy command", "freeze")
	s.keys(`"copy`)
	s.shows("search the keys: copy", "c  copy command")
	s.lacks("freeze")
	s.keys("backspace", "backspace", "backspace", "backspace")
	s.shows("freeze", "type to search the keys")
	s.keys(`"ctrl`)
	s.shows("suspend")
	s.lacks("copy command")
	s.keys(`"zzz`)
	s.shows("no key for this")
	s.keys("esc")
	s.shows("[6 pending:10]")
	s.keys("?", `"q`, "?")
	s.shows("search the keys: q?")
	s.keys("esc", "?", "?")
	s.shows("[6 pending:10]")
}
