// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// AtMost writes a count, with a sign in front if it may be lower.
func AtMost(n int, bound bool) string { return Bounded(n, UpperBound(bound)) }

// AtLeast writes a count, with a sign in front if it may be higher.
func AtLeast(n int, bound bool) string { return Bounded(n, LowerBound(bound)) }

// UpperBound returns the bound of a count that may be lower.
func UpperBound(bound bool) api.Bound {
	if bound {
		return api.BoundAtMost
	}
	return ""
}

// LowerBound returns the bound of a count that may be higher.
func LowerBound(bound bool) api.Bound {
	if bound {
		return api.BoundAtLeast
	}
	return ""
}

// Bounded writes a count, with a sign if it is uncertain.
func Bounded(n int, bound api.Bound) string {
	text := strconv.Itoa(n)
	switch bound {
	case api.BoundAtMost:
		return "≤" + text
	case api.BoundAtLeast:
		return "≥" + text
	case api.BoundUnknown:
		return text + "?"
	default:
		return text
	}
}

// PlaceableBound returns the bound of a count of claims that can be placed.
func PlaceableBound(count *api.CopyCount, freeIsUpperBound, devicesAreLowerBounds bool) api.Bound {
	sure := count.AtMost != nil && *count.AtMost == count.AtLeast
	switch {
	case freeIsUpperBound && sure:
		return api.BoundAtMost
	case freeIsUpperBound:
		return api.BoundUnknown
	default:
		return LowerBound(!sure || devicesAreLowerBounds)
	}
}
