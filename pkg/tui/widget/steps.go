// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

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

// Actor marks who can act at the beginning of a step that names them, as in "you: delete it".
func (l *Look) Actor(step string) string {
	for _, who := range []string{"you:", "admin:", "wait:"} {
		if text, ok := strings.CutPrefix(step, who); ok {
			return l.Say(Strong, who) + text
		}
	}
	return step
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
// blanks outside of quotation marks and the parts of JSON allow, and so that the lines can be
// pasted together: they end with a backslash, or within JSON.
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
		parts := []string{word}
		if line.Len()+len(word)+2 > width {
			parts = jsonParts(word)
		}
		for _, part := range parts {
			if strings.TrimSpace(line.String()) != "" && part != word && line.Len()+len(part)+2 > width {
				lines = append(lines, line.String())
				line.Reset()
				line.WriteString("  ")
			}
			line.WriteString(part)
		}
	}
	return append(lines, line.String())
}

// Indented wraps a command behind a margin, which is smaller for lines that need its room.
func Indented(command string, margin, width int) []string {
	lines := Wrap(command, width-margin)
	for i, line := range lines {
		lines[i] = strings.Repeat(" ", max(min(margin, width-len(line)), 0)) + line
	}
	return lines
}

// Whole returns a line on as many lines as it needs. Only words of commands are longer than a line.
func (l *Look) Whole(line string, width int) []string {
	if ansi.StringWidth(line) <= width {
		return []string{line}
	}
	text, tone := ansi.Strip(line), Plain
	if text != line {
		tone = Faint
	}
	parts := strings.Split(ansi.Hardwrap(text, max(width, 1), true), "\n")
	for i := range parts {
		parts[i] = l.Say(tone, parts[i])
	}
	return parts
}

// jsonParts cuts JSON in single quotation marks after its commas and colons, where it may have
// blanks. Other words stay whole.
func jsonParts(word string) []string {
	if !strings.HasPrefix(word, "'[") && !strings.HasPrefix(word, "'{") {
		return []string{word}
	}
	var parts []string
	first, quoted, escaped := 0, false, false
	for i, r := range word {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quoted:
			escaped = true
		case r == '"':
			quoted = !quoted
		case (r == ',' || r == ':') && !quoted:
			parts, first = append(parts, word[first:i+1]), i+1
		}
	}
	return append(parts, word[first:])
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
