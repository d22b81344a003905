// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
)

// selectorCompileError is what upstream calls an expression that does not
// compile (structured/internal/*/allocator_*.go, selectorsMatch).
const selectorCompileError = "CEL compile error"

// isCompileError reports whether the allocator gave up because of an expression
// that does not compile.
func isCompileError(err error) bool { return strings.Contains(err.Error(), selectorCompileError) }

// compileProblem finds the first selector that does not compile, in the order in
// which the allocator comes to them, and names it for people; nil if all do.
// Stored is true if it is in the cluster and not only in a file.
func compileProblem(q *funnel.Question) (named string, problem *selector.CompileError, stored bool) {
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				for _, placed := range funnel.PlacedSelectors(f.Checks) {
					sel := q.Selectors.Compile(placed.Expression)
					if sel.Err == nil {
						continue
					}
					problem = q.Selectors.Problem(sel)
					if placed.Source == funnel.SourceClass {
						return "the selector of class " + f.Request.Class, problem, f.Checks.Class.UID != ""
					}
					return fmt.Sprintf("%s of request %s", funnel.SelectorNoun(placed.Label), f.Request.Name), problem, isStored(q, &q.Claims[i])
				}
			}
		}
	}
	return "", nil, false
}

// isStored reports whether a claim, or the template that it is made from, is in
// the cluster and not only in a file.
func isStored(q *funnel.Question, c *funnel.Claim) bool {
	pc := &q.PodClaims[c.Index]
	if !pc.Generated {
		return c.Claim.UID != ""
	}
	template := q.Cluster.Snapshot.Template(c.Claim.Namespace, pc.Template)
	return template != nil && template.UID != ""
}

// compileSummary is one sentence about a selector that does not compile.
func compileSummary(q *funnel.Question) string {
	named, problem, stored := compileProblem(q)
	if problem == nil {
		return "a selector does not compile"
	}
	consequence := "the API server rejects it"
	if stored {
		consequence = "the API server rejects it in new objects; this one was stored by an older version, or kept because an update did not change it"
	}
	return fmt.Sprintf("%s does not compile: %s; %s", named, funnel.ProblemText(problem), consequence)
}
