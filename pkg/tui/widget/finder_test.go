// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// run does what a command asks for, and what that leads to.
func run(m *Finder, cmd tea.Cmd) Outcome {
	var outcome Outcome
	for cmd != nil {
		cmd, outcome = m.Update(cmd())
	}
	return outcome
}

func typed(m *Finder, text string) {
	for _, r := range text {
		cmd, _ := m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		run(m, cmd)
	}
}

func listOf(items ...Found) *Finder {
	m := NewFinder("find: ")
	m.SetSize(60, 10)
	run(m, m.Load(func() []Found { return items }))
	return m
}

func screen(m *Finder) string {
	l := NewLook(func(string) string { return "" })
	return ansi.Strip(m.View(&l))
}

// TestFind chooses by letters in order; a name with all of them in one piece is first.
func TestFind(t *testing.T) {
	items := []Found{{"device", "gpu.example.com/gpu-10/gpu-1"}, {"device", "gpu.example.com/gpu-01/gpu-0"}, {"pod", "research/train-0"}, {"node", "gpu-01"}}
	for query, want := range map[string]string{"": items[0].Name, "train": "research/train-0", "rt0": "research/train-0", "gpu-01": "gpu-01", "01/0": items[1].Name, "GPU-01 gpu": items[1].Name} {
		m := listOf(items...)
		typed(m, query)
		_, outcome := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		if outcome.Chosen == nil || outcome.Chosen.Name != want {
			t.Errorf("%q chooses %v, want %s:\n%s", query, outcome.Chosen, want, screen(m))
		}
	}
	m := listOf(items...)
	typed(m, "zzz")
	if _, outcome := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter}); outcome.Chosen != nil || outcome.Left {
		t.Errorf("chose %v of nothing", outcome.Chosen)
	}
	if got := screen(m); !strings.Contains(got, "0 of 4") {
		t.Errorf("the screen is\n%s", got)
	}
}

// TestLeave ends without a choice.
func TestLeave(t *testing.T) {
	m := listOf(Found{"", "a"})
	typed(m, "a")
	if _, outcome := m.Update(tea.KeyPressMsg{Code: tea.KeyBackspace}); outcome.Left {
		t.Error("backspace leaves although there is something typed")
	}
	for _, code := range []rune{tea.KeyBackspace, tea.KeyEscape} {
		if _, outcome := m.Update(tea.KeyPressMsg{Code: code}); !outcome.Left {
			t.Errorf("%q does not leave", code)
		}
	}
}

// TestMany keeps the selected name in sight, and asks for one search at a time.
func TestMany(t *testing.T) {
	items := make([]Found, 40000)
	for i := range items {
		items[i] = Found{"device", fmt.Sprintf("gpu.example.com/node-%05d/gpu-%d", i/8, i%8)}
	}
	m := listOf(items...)
	first, _ := m.Update(tea.KeyPressMsg{Code: '4', Text: "4"})
	second, _ := m.Update(tea.KeyPressMsg{Code: '2', Text: "2"})
	if first == nil || second != nil {
		t.Error("searches at the same time")
	}
	run(m, first)
	typed(m, "42/7")
	for range 3 {
		m.Update(tea.KeyPressMsg{Code: tea.KeyPgDown})
	}
	lines := strings.Split(screen(m), "\n")
	if len(lines) != 10 || !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "›") }) {
		t.Errorf("%d lines:\n%s", len(lines), screen(m))
	}
	if !strings.Contains(lines[0], "4242/7") || !strings.HasSuffix(lines[9], "of 40,000") {
		t.Errorf("the screen is\n%s", screen(m))
	}
}

// TestHostile shows names without their control characters.
func TestHostile(t *testing.T) {
	m := listOf(Found{"device", "evil\x1b[2J\x07\n"})
	l := NewLook(func(string) string { return "" })
	if got := m.View(&l); strings.Contains(got, "\x1b[2J") || strings.Contains(got, "\x07") || strings.Count(got, "\n") != 9 {
		t.Errorf("%q", got)
	}
}
