// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Gang is the outcome for the pods of a PodGroup if they are decided one after another.
type Gang struct {
	// Existing counts the pods that there are, Fit those that have a node or get one.
	Existing, Fit int
	// Above has the CompositePodGroups that it belongs to, the nearest first.
	Above []CompositeFit
}

// Short names the group whose pods or groups are too few to fit: the PodGroup or the nearest
// CompositePodGroup above it; empty if enough do.
func (g *Gang) Short(group string, minCount int) string {
	if g.Fit < minCount {
		return fmt.Sprintf("%d of %s of PodGroup %s fit, minCount is %d", g.Fit, english.Count(g.Existing, "pod"), group, minCount)
	}
	for i := range g.Above {
		if above := &g.Above[i]; above.Fit < above.Tree.MinCount {
			return fmt.Sprintf("%d of %s of CompositePodGroup %s fit, minGroupCount is %d: not enough pods of %s do", above.Fit,
				english.Count(len(above.Tree.Children), "group"), above.Tree.Name(), above.Tree.MinCount, english.Sample(above.Short, 4))
		}
	}
	return ""
}

// CompositeFit is the outcome for the groups of a CompositePodGroup.
type CompositeFit struct {
	Tree *GroupTree
	// Ready counts the groups with enough pods, Fit the groups with enough pods that have a
	// node or get one.
	Ready, Fit int
	// Short lists the names of the groups that do not fit.
	Short []string
}
