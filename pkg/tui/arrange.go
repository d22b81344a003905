// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"context"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/table"
)

// arrangement says which rows of a content are wanted, in which order.
type arrangement struct {
	// namespace is the only one to show, empty for all.
	namespace string
	scope     scope
	filter    string
	// sortBy is a column; a negative one leaves the order of the content.
	sortBy     int
	descending bool
	// worked is the version of the reasons, or of the findings, that rows are picked
	// and sorted by.
	worked int
}

// same reports whether two arrangements are, apart from their scopes, which stay
// what they are for a screen.
func (a arrangement) same(b arrangement) bool {
	return a.namespace == b.namespace && a.filter == b.filter && a.sortBy == b.sortBy && a.descending == b.descending && a.worked == b.worked
}

// apply picks and sorts the rows of a content. The note is what else there is to
// know about them. It fails if the filter cannot be read.
func (a arrangement) apply(ctx context.Context, p *picture.Picture, s table.Content) (rows []int, note string, err error) {
	filter, note, err := parseFilter(ctx, a.filter, p)
	if err != nil {
		return nil, "", err
	}
	inScope := func(any) bool { return true }
	if a.scope.matcher != nil {
		if inScope, err = a.scope.matcher(ctx, p); err != nil {
			return nil, "", err
		}
	}
	rows = make([]int, 0, s.Rows())
	for row := range s.Rows() {
		item := s.Item(row)
		if a.namespace != "" {
			if claim, ok := item.(*api.Claim); ok && claim.Namespace != "" && claim.Namespace != a.namespace {
				continue
			}
			if other, ok := item.(interface{ Space() string }); ok && other.Space() != a.namespace {
				continue
			}
			if f, ok := item.(*api.Finding); ok && !picture.Concerns(f, a.namespace) {
				continue
			}
		}
		if !inScope(item) {
			continue
		}
		if filter != nil {
			wanted, err := filter(s, row)
			if err != nil {
				return nil, "", err
			}
			if !wanted {
				continue
			}
		}
		rows = append(rows, row)
	}
	a.sort(s, rows)
	return rows, note, nil
}

// sort is stable. Without a column it keeps the order of the content, or turns it
// round. Rows without a value come last.
func (a arrangement) sort(s table.Content, rows []int) {
	if a.sortBy < 0 || a.sortBy >= len(s.Columns()) {
		if a.descending {
			slices.Reverse(rows)
		}
		return
	}
	type sortKey struct {
		text  string
		value float64
		ok    bool
	}
	numeric := s.Numeric(a.sortBy)
	keys := make(map[int]sortKey, len(rows))
	for _, row := range rows {
		var k sortKey
		if numeric {
			k.value, k.ok = s.Value(row, a.sortBy)
		} else {
			k.text = s.Cell(row, a.sortBy)
			k.ok = k.text != "-"
		}
		keys[row] = k
	}
	slices.SortStableFunc(rows, func(x, y int) int {
		left, right := keys[x], keys[y]
		switch {
		case !left.ok && !right.ok:
			return 0
		case !left.ok:
			return 1
		case !right.ok:
			return -1
		}
		order := cmp.Or(cmp.Compare(left.value, right.value), cmp.Compare(left.text, right.text))
		if a.descending {
			return -order
		}
		return order
	})
}
