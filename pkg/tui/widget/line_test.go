// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// TestAnswers types an answer, completes one, and gives up.
func TestAnswers(t *testing.T) {
	escape, enter, tab := tea.KeyPressMsg{Code: tea.KeyEscape}, tea.KeyPressMsg{Code: tea.KeyEnter}, tea.KeyPressMsg{Code: tea.KeyTab}
	for name, tc := range map[string]struct {
		press []tea.KeyPressMsg
		want  []string
	}{
		"typed":     {[]tea.KeyPressMsg{{Code: 'x', Text: "x"}, enter}, []string{"typed mx", "answered mx"}},
		"completed": {[]tea.KeyPressMsg{tab, enter}, []string{"typed ml-team", "answered ml-team"}},
		"left":      {[]tea.KeyPressMsg{{Code: 'x', Text: "x"}, escape}, []string{"typed mx", "left"}},
	} {
		t.Run(name, func(t *testing.T) {
			var heard []string
			say := func(what string) func(string) tea.Cmd {
				return func(text string) tea.Cmd {
					heard = append(heard, strings.TrimSpace(what+" "+text))
					return nil
				}
			}
			var line Line
			line.Resize(40)
			line.Open(&Question{
				Prompt: "namespace: ", Value: "m", Help: "tab completes", Proposed: []string{"ml-team"},
				Typed: say("typed"), Answered: say("answered"), Left: func() tea.Cmd { return say("left")("") },
			})
			if !line.Asks() || line.Help() != "tab completes" || !strings.HasPrefix(ansi.Strip(line.View()), "namespace: ") {
				t.Errorf("nothing is asked: %q, %q", line.Help(), line.View())
			}
			for _, press := range tc.press {
				line.Update(press)
			}
			if !slices.Equal(heard, tc.want) {
				t.Errorf("it heard %q, want %q", heard, tc.want)
			}
			if line.Asks() {
				t.Error("it still asks")
			}
		})
	}
}
