// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/xlab/treeprint"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Tree draws a tree.
func Tree(w io.Writer, root *api.Branch) error {
	tree := treeprint.NewWithRoot(branchText(root))
	addBranches(tree, root.Branches)
	if _, err := io.WriteString(w, tree.String()); err != nil {
		return fmt.Errorf("print tree: %w", err)
	}
	return nil
}

func addBranches(tree treeprint.Tree, branches []api.Branch) {
	for i := range branches {
		if b := &branches[i]; len(b.Branches) == 0 {
			tree.AddNode(branchText(b))
		} else {
			addBranches(tree.AddBranch(branchText(b)), b.Branches)
		}
	}
}

func branchText(b *api.Branch) string {
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
