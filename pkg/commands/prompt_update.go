// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Update answers a key or takes a result.
func (m *promptModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = msg.Width
		m.input.SetWidth(max(msg.Width-len(m.input.Prompt)-1, 1))
		return m, nil
	case countedMsg:
		m.done()
		if msg.err == nil {
			m.counted = msg.promptCounts
		} else if !errors.Is(msg.err, context.Canceled) {
			m.err = msg.err
			return m, m.quit()
		}
		return m, m.next()
	case answeredMsg:
		m.done()
		if msg.err != nil {
			m.err = msg.err
			return m, m.quit()
		}
		return m, tea.Sequence(tea.Println(strings.TrimRight(msg.report, "\n")+"\n"), m.next())
	case tea.KeyPressMsg:
		if cmd, known := m.key(msg); known {
			return m, cmd
		}
	}
	before := m.input.Value()
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	if m.input.Value() != before {
		m.history.at = len(m.history.lines)
	}
	m.look()
	return m, tea.Batch(cmd, m.next())
}

// key answers a key that does more than to edit the line.
func (m *promptModel) key(msg tea.KeyPressMsg) (cmd tea.Cmd, known bool) {
	switch msg.String() {
	case "ctrl+c":
		return m.quit(), true
	case "ctrl+d":
		if m.input.Value() == "" {
			return m.quit(), true
		}
	case "enter":
		return m.enter(), true
	case "tab":
		m.complete(1)
		return m.next(), true
	case "shift+tab":
		m.complete(-1)
		return m.next(), true
	case "up":
		m.back(-1)
		return m.next(), true
	case "down":
		m.back(1)
		return m.next(), true
	}
	return nil, false
}

// quit ends the program, and leaves nothing on the screen but the answers.
func (m *promptModel) quit() tea.Cmd {
	m.ending = true
	return tea.Quit
}

// enter asks for the whole answer about the typed text.
func (m *promptModel) enter() tea.Cmd {
	text := strings.TrimSpace(m.input.Value())
	if text == "" {
		return nil
	}
	lines := m.history.lines
	var save tea.Cmd
	if len(lines) == 0 || lines[len(lines)-1] != text {
		lines = append(lines, text)
		save = m.save(text)
	}
	m.history = promptHistory{lines: lines, at: len(lines)}
	m.entered = append(m.entered, text)
	m.input.Reset()
	m.look()
	return tea.Batch(save, tea.Sequence(tea.Println(m.input.Prompt+text), m.next()))
}

// save keeps an expression for the next prompt. Where that is not possible, this one
// works as well.
func (m *promptModel) save(text string) tea.Cmd {
	return func() tea.Msg {
		_ = m.opts.Saved.add(text)
		return nil
	}
}

// back goes through the history, and returns in the end to the typed text.
func (m *promptModel) back(step int) {
	to := m.history.at + step
	if to < 0 || to > len(m.history.lines) {
		return
	}
	if m.history.at == len(m.history.lines) {
		m.history.draft = m.input.Value()
	}
	m.history.at = to
	text := m.history.draft
	if to < len(m.history.lines) {
		text = m.history.lines[to]
	}
	m.input.SetValue(text)
	m.input.CursorEnd()
	m.look()
}

// look finds out what the word before the cursor can become.
func (m *promptModel) look() {
	before := string([]rune(m.input.Value())[:m.input.Position()])
	start, words := m.opts.Words.Complete(before)
	m.proposed = promptProposals{before: before, start: start, words: words, chosen: -1}
}

// complete puts in what all proposals have in common or, if that is there already,
// one proposal after the other.
func (m *promptModel) complete(step int) {
	p := m.proposed
	if len(p.words) == 0 {
		return
	}
	if common := commonStart(p.words); p.chosen < 0 && len(common) > len(p.before)-p.start {
		m.replace(p.before[:p.start] + common)
		m.look()
		return
	}
	p.chosen += step
	if p.chosen < 0 && step < 0 {
		p.chosen = len(p.words) - 1
	}
	p.chosen %= len(p.words)
	m.replace(p.before[:p.start] + p.words[p.chosen])
	m.proposed = p
}

// replace puts another text before the cursor.
func (m *promptModel) replace(before string) {
	after := string([]rune(m.input.Value())[m.input.Position():])
	m.input.SetValue(before + after)
	m.input.SetCursor(len([]rune(before)))
}

func commonStart(words []string) string {
	common := words[0]
	for _, word := range words[1:] {
		for !strings.HasPrefix(word, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.ToValidUTF8(common, "")
}
