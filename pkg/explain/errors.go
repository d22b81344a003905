// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/funnel"
)

// compileSummary returns one sentence about a selector that does not compile.
func compileSummary(q *funnel.Question) string {
	named, problem, stored := funnel.CompileProblem(q)
	if problem == nil {
		return "a selector does not compile"
	}
	consequence := "the API server rejects it"
	if stored {
		consequence = "the API server rejects it in new objects; this one was stored by an older version, or kept because an update did not change it"
	}
	return fmt.Sprintf("%s does not compile: %s; %s", named, funnel.ProblemText(problem), consequence)
}
