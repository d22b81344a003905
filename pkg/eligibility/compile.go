// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
)

// CompileProblem finds the first selector that does not compile, in the order in
// which the allocator comes to them, and names it for people; nil if all do.
// Stored is true if it is in the cluster and not only in a file.
func CompileProblem(q *Question) (named string, problem *selector.CompileError, stored bool) {
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				for _, placed := range PlacedSelectors(f.Checks) {
					sel := q.Selectors.Compile(placed.Expression)
					if sel.Err == nil {
						continue
					}
					problem = q.Selectors.Problem(sel)
					if placed.Source == SourceClass {
						return "the selector of class " + f.Request.Class, problem, f.Checks.Class.UID != ""
					}
					return fmt.Sprintf("%s of request %s", SelectorNoun(placed.Label), f.Request.Name), problem, isStored(q, &q.Claims[i])
				}
			}
		}
	}
	return "", nil, false
}

// isStored reports whether a claim, or the template that it is made from, is in
// the cluster and not only in a file.
func isStored(q *Question, c *Claim) bool {
	pc := &q.PodClaims[c.Index]
	if !pc.Generated {
		return c.Claim.UID != ""
	}
	template := q.Cluster.Snapshot.Template(c.Claim.Namespace, pc.Template)
	return template != nil && template.UID != ""
}
