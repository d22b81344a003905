// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

const promptKeys = "tab complete, up/down history, enter full answer, ctrl+c quit"

// View draws the line that is typed, what becomes of it, and what its last word can
// become.
func (m *promptModel) View() tea.View {
	if m.ending {
		return tea.NewView("")
	}
	lines := []string{m.input.View(), "  " + m.state(), "  " + m.words()}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return tea.NewView(strings.Join(lines, "\n"))
}

// state returns what becomes of the text. While a newer text is evaluated, the state of the older
// one stays.
func (m *promptModel) state() string {
	faint := ansi.Style{}.Faint()
	text := m.input.Value()
	switch {
	case text == "" && m.running != nil:
		return faint.Styled("evaluating " + render.Escape(m.running.text))
	case text == "":
		return faint.Styled(m.opts.About)
	case !m.counted.known:
		return faint.Styled("…")
	}
	said := m.outcome()
	if m.counted.text != text {
		said += faint.Styled(" …")
	}
	return said
}

func (m *promptModel) outcome() string {
	c := &m.counted
	if c.problem != nil {
		where := ""
		if c.problem.Column > 0 {
			where = fmt.Sprintf(" at %d", c.problem.Column)
		}
		return ansi.Style{}.Faint().Styled("does not compile" + where + ": " + render.Escape(c.problem.Reason))
	}
	part := func(word string, n int, style ansi.Style) string {
		text := word + " " + english.Thousands(n)
		if n == 0 {
			return ansi.Style{}.Faint().Styled(text)
		}
		return style.Styled(text)
	}
	return strings.Join([]string{
		part("true", c.outcomes.True, ansi.Style{}.Bold().ForegroundColor(ansi.Green)),
		part("false", c.outcomes.False, ansi.Style{}.Bold()),
		part("fails", c.outcomes.Fails, ansi.Style{}.Bold().ForegroundColor(ansi.Red)),
	}, "   ") + "   of " + english.Count(m.opts.Devices.Len(), "device")
}

// words returns the proposals, as many as there is room for, from the chosen one on.
func (m *promptModel) words() string {
	p := &m.proposed
	if len(p.words) == 0 {
		return ansi.Style{}.Faint().Styled(promptKeys)
	}
	var shown []string
	room := m.width - len("  and 100 more")
	first := max(p.chosen, 0)
	for i := first; i < len(p.words); i++ {
		word := render.Escape(p.words[i])
		if room -= ansi.StringWidth(word) + 2; room < 0 && len(shown) > 0 {
			break
		}
		if i == p.chosen {
			word = ansi.Style{}.Reverse(true).Styled(word)
		}
		shown = append(shown, word)
	}
	text := strings.Join(shown, "  ")
	if more := len(p.words) - len(shown); more > 0 {
		text += ansi.Style{}.Faint().Styled(fmt.Sprintf("  and %d more", more))
	}
	return text
}

// runPrompt shows the prompt until the user quits or the context is done. The terminal is
// left as it was.
func runPrompt(ctx context.Context, opts promptOptions, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// As in package tui, a signal ends the context.
	program := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(in), tea.WithOutput(out)}
	if !opts.Color {
		program = append(program, tea.WithColorProfile(colorprofile.ASCII))
	}
	m := newPrompt(ctx, opts)
	if _, err := tea.NewProgram(m, program...).Run(); err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("show the prompt: %w", err)
	}
	return m.Err()
}
