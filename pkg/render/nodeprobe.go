// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

const (
	// sectionWidth is that of the longest name of a section.
	sectionWidth = len("plugins")
	markWidth    = 1
	// alike is how many checks of one kind that are in order are shown.
	alike = 3
)

// NodeReport draws what was found on a node: a line for each check, with the
// evidence if it is not in order. Where many of one kind are in order, only
// wide shows all of them.
func NodeReport(w io.Writer, r *nodeprobe.Report, opts Options) error {
	p := newPage(opts)
	name := "This node"
	if r.Node != "" {
		name = "Node " + r.Node
	}
	p.text(0, strong, name+": "+checkCounts(r.Checks()))
	p.text(2, faint, fmt.Sprintf("root %s, kubelet %s, CDI %s", r.Paths.Root, r.Paths.Kubelet, strings.Join(r.Paths.CDI, " and ")))
	p.blank()
	for _, section := range r.Sections() {
		p.section(section.Name, section.Checks)
	}
	if _, err := w.Write(p.buf.Bytes()); err != nil {
		return fmt.Errorf("print the report of the node: %w", err)
	}
	return nil
}

// section draws the checks of one part beside its name.
func (p *page) section(name string, checks []node.Check) {
	if len(checks) == 0 {
		p.row(0, cell{text: name, width: sectionWidth, mark: strong}, cell{text: "-", width: markWidth}, cell{text: "nothing to check"})
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
		if c.State == node.OK && !p.opts.Wide && fine[c.Name] > alike+1 {
			if shown[c.Name]++; shown[c.Name] > alike+1 {
				continue
			} else if shown[c.Name] > alike {
				c = node.Good(c.Name, "", "and %d more of this kind", fine[c.Name]-alike)
			}
		}
		p.check(sectionWidth+columnGap, &c, cell{text: name, width: sectionWidth, mark: strong})
		name = ""
	}
}

// check draws one: its mark, what was found, where, and the values that prove
// it. before are cells to its left, indent is how much room they take.
func (p *page) check(indent int, c *node.Check, before ...cell) {
	text := c.Message
	if c.Path != "" && !strings.Contains(c.Message, c.Path) {
		text = c.Path + ": " + text
	}
	p.row(0, append(before, nodeSign(c.State), cell{text: text})...)
	if c.Found != "" || c.Required != "" {
		p.row(indent+markWidth+columnGap, cell{text: "found", width: len("required"), mark: faint}, cell{text: orElse(c.Found, "nothing")})
		if c.Required != "" {
			p.row(indent+markWidth+columnGap, cell{text: "required", width: len("required"), mark: faint}, cell{text: c.Required})
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
