// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"charm.land/bubbles/v2/textinput"
	"charm.land/lipgloss/v2"
)

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
