// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Assumptions lists what a preview assumes, and what could not be read, what matters most
// first.
func Assumptions(s *snapshot.Snapshot) []string {
	order := []string{
		snapshot.ResourceClaims, snapshot.ResourceSlices, snapshot.ResourcePods, snapshot.ResourceClasses, snapshot.ResourceNodes, snapshot.ResourceTaintRules,
	}
	place := func(gap snapshot.Gap) int {
		if at := slices.Index(order, gap.Resource); at >= 0 {
			return at
		}
		return len(order)
	}
	sorted := slices.Clone(s.Gaps)
	slices.SortStableFunc(sorted, func(a, b snapshot.Gap) int { return cmp.Compare(place(a), place(b)) })
	reasons := snapshot.PreviewAssumptions(s)
	for i := range sorted {
		reasons = append(reasons, sorted[i].Reason)
	}
	return reasons
}
