// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Question is a question to the user.
type Question struct {
	// Prompt stands before the input, Value is the initial input. Help describes possible
	// input.
	Prompt, Value, Help string
	// Proposed are texts that Tab completes.
	Proposed []string
	// Typed takes in the text whenever it changes; it may be nil. Answered gets it at the end.
	Typed, Answered func(text string) tea.Cmd
	// Left gives up; it may be nil.
	Left func() tea.Cmd
}

// Line is where an answer is typed. The zero value asks nothing.
type Line struct {
	input textinput.Model
	// asked is nil if nothing is asked.
	asked *Question
	width int
}

// Open asks something.
func (l *Line) Open(q *Question) {
	l.asked = q
	// A new one: what could be completed before stays in the old one.
	l.input = NewInput(q.Prompt)
	l.Resize(l.width)
	l.input.SetValue(q.Value)
	l.input.CursorEnd()
	l.input.ShowSuggestions = len(q.Proposed) > 0
	l.input.SetSuggestions(q.Proposed)
}

// Close asks nothing any more.
func (l *Line) Close() { l.asked = nil }

// Asks reports whether something is asked.
func (l *Line) Asks() bool { return l.asked != nil }

// Help says what can be typed; empty if nothing is asked.
func (l *Line) Help() string {
	if l.asked == nil {
		return ""
	}
	return l.asked.Help
}

// Resize sets the width of the screen.
func (l *Line) Resize(width int) {
	l.width = width
	l.input.SetWidth(max(width-20, 10))
}

// Update handles input while a question is open.
func (l *Line) Update(msg tea.Msg) tea.Cmd {
	asked := l.asked
	if press, ok := msg.(tea.KeyPressMsg); ok {
		switch press.String() {
		case "ctrl+c":
			return tea.Quit
		case "enter":
			l.Close()
			return asked.Answered(l.input.Value())
		case "esc":
			l.Close()
			if asked.Left == nil {
				return nil
			}
			return asked.Left()
		}
	}
	l.input, _ = l.input.Update(msg)
	if asked.Typed == nil {
		return nil
	}
	return asked.Typed(l.input.Value())
}

// View draws the input.
func (l *Line) View() string { return ansi.Truncate(l.input.View(), l.width, "") }

// NewInput returns a focused input with the colors of the terminal: its usual ones are for a dark
// background. Its cursor does not blink, so there is nothing to wait for.
func NewInput(prompt string) textinput.Model {
	input := textinput.New()
	input.Prompt = prompt
	styles := textinput.Styles{Cursor: input.Styles().Cursor}
	styles.Focused.Suggestion = styles.Focused.Suggestion.Faint(true)
	styles.Cursor.Color = lipgloss.NoColor{}
	input.SetStyles(styles)
	_ = input.Focus()
	return input
}
