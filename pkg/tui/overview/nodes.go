// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// nodes draws signs, as many on a line as fit, each group after its name.
func (p *Page) nodes(width int) box {
	count := 0
	for i := range p.model.Nodes {
		count += len(p.model.Nodes[i].Cells)
	}
	if p.signs == nil || p.signsWidth != width {
		// There may be thousands, and the page is drawn with every key.
		p.signs, p.signsWidth = p.nodeLines(width), width
	}
	lines := p.signs
	return box{
		name: "nodes", title: "Nodes with devices: " + english.Thousands(count), foot: p.model.NodeLegend, count: len(lines), all: p.model.OpenNodes,
		id:   func(i int) string { return fmt.Sprint("line ", i) },
		open: func(int) any { return p.model.OpenNodes },
		rows: func(int) (string, []string) { return "", lines },
	}
}

func (p *Page) nodeLines(width int) []string {
	var lines []string
	var line strings.Builder
	left := width - 1
	flush := func() {
		if line.Len() > 0 {
			lines = append(lines, " "+line.String())
		}
		line.Reset()
		left = width - 1
	}
	for i := range p.model.Nodes {
		g := &p.model.Nodes[i]
		name := ""
		if g.Name != "" {
			name = ansi.Truncate(render.Escape(g.Name), maxName, p.look.Glyphs.More) + " "
		}
		if ansi.StringWidth(name)+len(g.Cells) > left {
			flush()
		}
		line.WriteString(p.look.Say(widget.Faint, name))
		left -= ansi.StringWidth(name)
		for from := 0; from < len(g.Cells); {
			if left < 1 {
				flush()
			}
			// Cells with one tone are drawn at once.
			var run strings.Builder
			tone := g.Cells[from].Tone
			for ; from < len(g.Cells) && left > 0 && g.Cells[from].Tone == tone; from++ {
				run.WriteString(g.Cells[from].Glyph)
				left--
			}
			line.WriteString(p.look.Say(tone, run.String()))
		}
		line.WriteString(gap)
		left -= len(gap)
	}
	flush()
	return lines
}
