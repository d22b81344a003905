// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

const (
	// sectionWidth is the width of the longest name of a section.
	sectionWidth = len("plugins")
	markWidth    = 1
	// shownOfKind is how many OK checks of one kind are shown.
	shownOfKind = 3
)

// writeReport writes the report of a node: a line for each check, with the evidence if it
// is not OK. Where many checks of a kind are OK, only wide shows all of them.
func writeReport(w io.Writer, r *nodeprobe.Report, opts render.Options) error {
	p := newPage(opts)
	name := "This node"
	if r.Node != "" {
		name = "Node " + r.Node
	}
	p.Text(0, render.Strong, name+": "+checkCounts(r.Checks()))
	p.Text(2, render.Faint, fmt.Sprintf("root %s, kubelet %s, CDI %s", r.Paths.Root, r.Paths.Kubelet, strings.Join(r.Paths.CDI, " and ")))
	p.Blank()
	for _, section := range r.Sections() {
		p.section(section.Name, section.Checks)
	}
	return p.write(w)
}

// section draws the checks of one part beside its name.
func (p *page) section(name string, checks []node.Check) {
	if len(checks) == 0 {
		p.Row(0, render.Cell{Text: name, Width: sectionWidth, Mark: render.Strong}, render.Cell{Text: "-", Width: markWidth}, render.Cell{Text: "nothing to check"})
		return
	}
	fine := map[string]int{}
	for i := range checks {
		c := checks[i]
		if c.State == node.OK {
			fine[c.Name]++
		}
	}
	shown := map[string]int{}
	for i := range checks {
		c := checks[i]
		if c.State == node.OK && !p.Opts.Wide && fine[c.Name] > shownOfKind+1 {
			if shown[c.Name]++; shown[c.Name] > shownOfKind+1 {
				continue
			} else if shown[c.Name] > shownOfKind {
				c = node.Good(c.Name, "", "and %d more of this kind", fine[c.Name]-shownOfKind)
			}
		}
		p.check(sectionWidth+render.ColumnGap, &c, render.Cell{Text: name, Width: sectionWidth, Mark: render.Strong})
		name = ""
	}
}

// check draws one check: its mark, message, paths, and the values that prove it. before are
// cells to its left, indent is their width.
func (p *page) check(indent int, c *node.Check, before ...render.Cell) {
	text := c.Message
	if c.Path != "" && !strings.Contains(c.Message, c.Path) {
		text = c.Path + ": " + text
	}
	p.Row(0, append(before, nodeSign(c.State), render.Cell{Text: text})...)
	if c.Found != "" || c.Required != "" {
		p.Row(indent+markWidth+render.ColumnGap, render.Cell{Text: "found", Width: len("required"), Mark: render.Faint}, render.Cell{Text: cmp.Or(c.Found, "nothing")})
		if c.Required != "" {
			p.Row(indent+markWidth+render.ColumnGap, render.Cell{Text: "required", Width: len("required"), Mark: render.Faint}, render.Cell{Text: c.Required})
		}
	}
}

// checkCounts counts checks in words.
func checkCounts(checks []node.Check) string {
	counts := map[node.State]int{}
	for i := range checks {
		counts[checks[i].State]++
	}
	var parts []string
	if n := counts[node.Problem]; n > 0 {
		parts = append(parts, english.Count(n, "problem"))
	}
	if n := counts[node.Unknown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n))
	}
	if n := counts[node.OK]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d OK", n))
	}
	return strings.Join(parts, ", ")
}
