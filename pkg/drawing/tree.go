// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"fmt"
	"io"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Tree draws trees: each object in a box, below and to the right of what it belongs to.
func Tree(title string, roots []api.Branch) *Drawing {
	const step, row = 28.0, line + 8.0
	d := newDrawing(title)
	var below func(b *api.Branch, depth int) float64
	below = func(b *api.Branch, depth int) float64 {
		x, y := float64(depth)*step, d.height
		text := cut(render.BranchText(b), width-x-12)
		d.rect(x+0.5, y+0.5, min(float64(len([]rune(text)))*column+12, width-x-1), row-5, "box")
		d.text(x+6, y+2, "plain", "", text)
		d.say("%s%s", strings.Repeat("of it, ", min(depth, 1)), text)
		d.height += row
		middle := y + row/2 - 2
		last := middle
		branches := render.DeviceRuns(b.Branches)
		for i := range branches {
			last = below(&branches[i], depth+1)
			d.line(x+10, last, x+step, last, "rule")
		}
		if len(branches) > 0 {
			d.line(x+10, y+row-4, x+10, last, "rule")
		}
		return middle
	}
	for i := range roots {
		below(&roots[i], 0)
		d.height += 4
	}
	return d
}

// graph has the objects of trees, each once, and what belongs to what.
type graph struct {
	texts []string
	edges [][2]int
	known map[string]int
}

func graphOf(roots []api.Branch) *graph {
	g := &graph{known: map[string]int{}}
	var add func(b *api.Branch, parent int)
	add = func(b *api.Branch, parent int) {
		text := render.BranchText(b)
		at, known := g.known[text]
		if !known {
			at = len(g.texts)
			g.known[text], g.texts = at, append(g.texts, text)
		}
		if parent >= 0 {
			g.edges = append(g.edges, [2]int{parent, at})
		}
		branches := render.DeviceRuns(b.Branches)
		for i := range branches {
			add(&branches[i], at)
		}
	}
	for i := range roots {
		add(&roots[i], -1)
	}
	seen := map[[2]int]bool{}
	edges := g.edges[:0]
	for _, edge := range g.edges {
		if !seen[edge] {
			edges = append(edges, edge)
		}
		seen[edge] = true
	}
	g.edges = edges
	return g
}

// DOT writes trees in the language of Graphviz. An object in several trees is one node.
func DOT(w io.Writer, roots []api.Branch) error {
	var b strings.Builder
	b.WriteString("digraph dra {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n")
	g := graphOf(roots)
	for i, text := range g.texts {
		fmt.Fprintf(&b, "  n%d [label=\"%s\"];\n", i, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text))
	}
	for _, edge := range g.edges {
		fmt.Fprintf(&b, "  n%d -> n%d;\n", edge[0], edge[1])
	}
	b.WriteString("}\n")
	return written(w, b.String())
}

// Mermaid writes trees as a flowchart of Mermaid. An object in several trees is one node.
func Mermaid(w io.Writer, roots []api.Branch) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	g := graphOf(roots)
	for i, text := range g.texts {
		fmt.Fprintf(&b, "  n%d[\"%s\"]\n", i, mermaidText(text))
	}
	for _, edge := range g.edges {
		fmt.Fprintf(&b, "  n%d --> n%d\n", edge[0], edge[1])
	}
	return written(w, b.String())
}

// mermaidText writes all that Mermaid, or the HTML that it makes, could obey as numbers.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\"#;&<>`\\[]{}|*_~", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func written(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the graph: %w", err)
	}
	return nil
}
