// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/xlab/treeprint"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Trees draws trees: all of them or, on a terminal of a known height, as many as there is room for,
// at least the first. Total counts the trees with others that are left out already.
func Trees(w io.Writer, roots []api.Branch, total int, opts Options) error {
	p := NewPage(opts)
	shown, lines := 0, 0
	for i := range roots {
		tree := treeprint.NewWithRoot(BranchText(&roots[i]))
		addBranches(tree, roots[i].Branches)
		for line := range strings.Lines(tree.String()) {
			// The terminal breaks a line that is too long.
			lines += 1 + max(ansi.StringWidth(line)-1, 0)/p.full
		}
		if opts.Height > 0 && shown > 0 && lines > opts.Height-belowRows {
			break
		}
		p.Buf.WriteString(tree.String())
		shown++
	}
	if more := total - shown; more > 0 {
		p.Text(0, Plain, fmt.Sprintf("… %s more (--limit 0 shows all)", english.Thousands(more)))
	}
	return p.Print(w)
}

func addBranches(tree treeprint.Tree, branches []api.Branch) {
	branches = DeviceRuns(branches)
	for i := range branches {
		if b := &branches[i]; len(b.Branches) == 0 {
			tree.AddNode(BranchText(b))
		} else {
			addBranches(tree.AddBranch(BranchText(b)), b.Branches)
		}
	}
}

// DeviceRuns puts devices into one branch that differ in nothing but their names, in the place of the
// first of them: "gpu-0 … gpu-3".
func DeviceRuns(branches []api.Branch) []api.Branch {
	var merged []api.Branch
	names, at := [][]string{}, map[string]int{}
	for _, b := range branches {
		if b.Of != api.KindDevice {
			merged, names = append(merged, b), append(names, nil)
			continue
		}
		place, name := "", b.Name
		if slash := strings.LastIndexByte(name, '/'); slash >= 0 {
			place, name = name[:slash+1], name[slash+1:]
		}
		b.Name = place
		tree := treeprint.NewWithRoot(BranchText(&b))
		addBranches(tree, b.Branches)
		first, known := at[tree.String()]
		if !known {
			first = len(merged)
			at[tree.String()] = first
			merged, names = append(merged, b), append(names, nil)
		}
		names[first] = append(names[first], name)
	}
	for i := range merged {
		merged[i].Name += strings.Join(english.Collapse(names[i]), ", ")
	}
	return merged
}

// BranchText returns an object of a tree in a line: its kind, its name and remarks.
func BranchText(b *api.Branch) string {
	name := b.Name
	if b.Namespace != "" {
		name = b.Namespace + "/" + name
	}
	text := b.Of + " " + name
	if len(b.Notes) > 0 {
		text += "  (" + strings.Join(b.Notes, "; ") + ")"
	}
	return Escape(text)
}
