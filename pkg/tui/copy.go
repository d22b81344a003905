// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// copyStep copies the commands of the step that helps an item, or of a chosen one, to the clipboard of
// the terminal. What is not the first step is always chosen: the screen shows that one.
func copyStep(h *host, item any) tea.Cmd {
	all := views.StepsOf(h.causes(), item)
	var steps []widget.Step
	for _, step := range all {
		if len(step.Commands) > 0 {
			steps = append(steps, step)
		}
	}
	switch {
	case len(steps) == 0:
		h.message = "no command is known that would help"
		return nil
	case len(steps) == 1 && len(all[0].Commands) > 0:
		return sendToClipboard(h, steps[0].Commands)
	}
	return choose(h, "copy the command to", func() []widget.Found {
		items := make([]widget.Found, 0, len(steps))
		for _, step := range steps {
			items = append(items, widget.Found{Kind: step.Who, Name: step.Text})
		}
		return items
	}, func(item widget.Found) tea.Cmd {
		at := slices.IndexFunc(steps, func(step widget.Step) bool { return step.Text == item.Name })
		return sendToClipboard(h, steps[at].Commands)
	})
}

// sendToClipboard asks the terminal to take commands into its clipboard (OSC 52). It does not say
// whether it did.
func sendToClipboard(h *host, commands []string) tea.Cmd {
	h.message = "sent to the clipboard of the terminal: " + strings.Join(commands, "; ")
	return tea.SetClipboard(strings.Join(commands, "\n") + "\n")
}
