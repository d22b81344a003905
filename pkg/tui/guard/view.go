// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Lines show a plan.
func (p *Plan) Lines(l *widget.Look, width int) []string {
	var lines []string
	if p.Warning != "" {
		for _, line := range wrapped(p.Warning, 0, width) {
			lines = append(lines, l.Say(widget.Bad, line))
		}
		lines = append(lines, "")
	}
	lines = append(lines, l.Say(widget.Strong, "The command that does the same"))
	for _, line := range widget.Wrap(render.Escape(p.Command), width-2) {
		lines = append(lines, "  "+line)
	}
	lines = append(lines, "", l.Say(widget.Strong, "What it does"))
	for _, line := range strings.Split(strings.TrimRight(p.Effects, "\n"), "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		lines = append(lines, wrapped(line[indent:], indent+2, width)...)
	}
	return lines
}

func wrapped(text string, indent, width int) []string {
	lines := strings.Split(ansi.Wrap(render.Escape(text), max(width-indent, 10), ""), "\n")
	for i := range lines {
		lines[i] = strings.Repeat(" ", indent) + lines[i]
	}
	return lines
}
