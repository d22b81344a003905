// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Step is something that somebody can do.
type Step struct {
	// Who is "you", "admin" or "wait".
	Who, Text string
	// Commands are for a shell, one line each.
	Commands []string
}

// maxSteps limits how many are worth their room beside a list.
const maxSteps = 4

// Steps returns the remedies of an explanation or, if there are none, the next steps.
func Steps(e *api.Explanation) []Step {
	var steps []Step
	for i := range e.Remedies {
		r := &e.Remedies[i]
		text := r.Change
		if r.Node != "" {
			text += fmt.Sprintf(" (fits on %s)", r.Node)
		}
		steps = append(steps, Step{who(r.Actor), text, r.Commands})
	}
	if len(steps) == 0 {
		for i := range e.NextSteps {
			n := &e.NextSteps[i]
			steps = append(steps, Step{who(n.Actor), n.Text, n.Commands})
		}
	}
	return steps[:min(len(steps), maxSteps)]
}

func who(actor string) string {
	switch actor {
	case api.ActorUser:
		return "you"
	case api.ActorAdmin:
		return "admin"
	case api.ActorNobody:
		return "wait"
	default:
		return actor
	}
}

// Wrap writes a command for the shell on lines that are no wider than width, as far as
// blanks outside of quotation marks allow. All but the last end with a backslash, so
// that they can be pasted together.
func Wrap(command string, width int) []string {
	var lines []string
	var line strings.Builder
	for _, word := range words(command) {
		if line.Len() > 0 && line.Len()+1+len(word)+2 > width {
			lines = append(lines, line.String()+` \`)
			line.Reset()
			line.WriteString("  ")
		} else if line.Len() > 0 {
			line.WriteByte(' ')
		}
		line.WriteString(word)
	}
	return append(lines, line.String())
}

// words cuts a command at its blanks outside of quotation marks.
func words(command string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	escaped := false
	for _, r := range command {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == ' ':
			words = append(words, word.String())
			word.Reset()
			continue
		}
		word.WriteRune(r)
	}
	return append(words, word.String())
}
