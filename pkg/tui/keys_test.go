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
	s := browse(t, 120, 30)
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
