// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
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

// TestFilterWords has rows with all of several words, in whatever columns.
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
	s.keys("4", "end", ">")
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

// TestHelpFits has all keys of every view on a screen of 80x24.
func TestHelpFits(t *testing.T) {
	for number := range viewNames() {
		s := browse(t, 80, 24)
		s.keys(viewID(number).key(), "?")
		s.shows("keys in "+viewNames()[number], "quit", "unhealthy")
		lines := strings.Split(strings.TrimSpace(strings.Split(s.screen(), "lines 1 to ")[1]), "\n")
		if words := strings.Fields(lines[0]); words[0] != words[2] {
			t.Errorf("only %q fit", lines[0])
		}
		s.keys("?")
		s.lacks("keys in ")
	}
}

// TestGoTo goes to views by parts of their names, from wherever one is.
func TestGoTo(t *testing.T) {
	s := browse(t, 120, 30)
	s.keys("7", "enter", ":", `"tain`, "enter")
	s.shows("[8 taints]")
	s.keys(":", `"pods`, "enter")
	s.shows("claims > pods", "ablation-0")
	s.keys(":", "esc")
	s.shows("claims > pods")
}

// TestFind finds an object of any kind, whatever is shown.
func TestFind(t *testing.T) {
	for query, want := range map[string][]string{
		"gpu-03/gpu-7": {"[4 devices]", "gpu-03"}, "pretrain0gpus": {"[5 claims]", "pretrain-0-gpus"}, "research/sweep-1": {"claims > pods", "sweep-1"},
		"mig-02": {"[2 nodes]", "mig-02"}, "decoder.ex": {"[7 classes]", "decoder.example.com"}, "nic.example.com/gpu-05": {"[3 pools]", "gpu-05"},
	} {
		s := browse(t, 120, 40)
		s.keys("5", "/", `"vision`, "enter", "4", "/", `"nic`, "enter", "f", `"`+query, "enter")
		s.shows(want[0])
		if row := s.selected(); !strings.Contains(row, want[1]) {
			t.Errorf("%q selects %q", query, row)
		}
	}
}

// TestSortPicked sorts by a column that is picked by its name, and back.
func TestSortPicked(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("3", "end", "s", `"tot`, "enter")
	s.shows("TOTAL ▲", "by Total", "1/")
	s.keys("s", `"order of`, "enter")
	s.lacks("▲")
}
