// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"
)

// names are the searched names.
type names []Found

func (n names) String(i int) string { return n[i].Name }
func (n names) Len() int            { return len(n) }

// match finds the names with the letters of a query in this order, the best first:
// names that have it in one piece stand before others, short ones before long ones.
func match(query string, items []Found) fuzzy.Matches {
	pattern := strings.ReplaceAll(strings.TrimSpace(query), " ", "")
	found := fuzzy.FindFromNoSort(pattern, names(items))
	type rank struct {
		whole bool
		score int
	}
	ranks := make([]rank, len(items))
	lower := strings.ToLower(pattern)
	for i := range found {
		ranks[found[i].Index] = rank{strings.Contains(strings.ToLower(found[i].Str), lower), found[i].Score}
	}
	slices.SortStableFunc(found, func(a, b fuzzy.Match) int {
		left, right := ranks[a.Index], ranks[b.Index]
		if left.whole != right.whole {
			if left.whole {
				return -1
			}
			return 1
		}
		return right.score - left.score
	})
	return found
}
