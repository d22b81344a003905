// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// compileSummary returns one sentence about a selector that does not compile.
func compileSummary(q *eligibility.Question) string {
	named, problem, stored := eligibility.CompileProblem(q)
	if problem == nil {
		return "a selector does not compile"
	}
	consequence, release := "the API server rejects it", q.Cluster.Snapshot.BinaryVersion()
	switch {
	case q.Cluster.Snapshot.Newer():
		consequence = fmt.Sprintf("Kubernetes %s may compile it: this program knows 1.%d and older", release, snapshot.NewestMinor)
	case stored:
		consequence = "the API server rejects it in new objects; this one was stored by an older version, or kept because an update did not change it"
	}
	return fmt.Sprintf("%s does not compile: %s; %s", named, eligibility.ProblemText(problem), consequence)
}

// tooOld reports whether the verdict is not known because only a newer program may know what
// a selector means.
func tooOld(v *verdict.Verdict, outcome api.Verdict) bool {
	return outcome == api.Undetermined && v.Cluster.Snapshot.Newer() && v.Ended >= 0 && verdict.IsCompileError(v.Checked[v.Ended].Err)
}
