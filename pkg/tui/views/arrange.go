// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"context"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Scope narrows a list that was opened from something down to what belongs to
// it. The zero value is the whole list.
type Scope struct {
	// Of says what the list was opened from.
	Of string
	// Matcher makes the test for the items of one picture.
	Matcher func(ctx context.Context, p *live.Picture) (func(item any) bool, error)
}

// Arrangement says which rows of a content are wanted, in which order.
type Arrangement struct {
	// Namespace is the only one to show, empty for all.
	Namespace string
	Scope     Scope
	Filter    string
	// SortBy is a column; a negative one leaves the order of the content.
	SortBy     int
	Descending bool
	// Causes are the causes that rows are made of; nil for lists without any.
	Causes *live.Causes
}

// Same reports whether two arrangements are, apart from their scopes, which stay
// what they are for a screen.
func (a Arrangement) Same(b Arrangement) bool {
	return a.Namespace == b.Namespace && a.Filter == b.Filter && a.SortBy == b.SortBy && a.Descending == b.Descending && a.Causes == b.Causes
}

// Apply picks and sorts the rows of a content. The note is what else there is to
// know about them. It fails if the filter cannot be read.
func (a Arrangement) Apply(ctx context.Context, p *live.Picture, s widget.Content) (rows []int, note string, err error) {
	filter, note, err := parseFilter(ctx, a.Filter, p)
	if err != nil {
		return nil, "", err
	}
	inScope := func(any) bool { return true }
	if a.Scope.Matcher != nil {
		if inScope, err = a.Scope.Matcher(ctx, p); err != nil {
			return nil, "", err
		}
	}
	rows = make([]int, 0, s.Rows())
	for row := range s.Rows() {
		item := s.Item(row)
		if a.Namespace != "" {
			if claim, ok := item.(*api.Claim); ok && claim.Namespace != "" && claim.Namespace != a.Namespace {
				continue
			}
			if other, ok := item.(interface{ Space() string }); ok && other.Space() != a.Namespace {
				continue
			}
			if f, ok := item.(*api.Finding); ok && !inventory.Concerns(f, a.Namespace) {
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
	if len(rows) == 0 && note == "" {
		note = unknownColumn(a.Filter, s.Columns())
	}
	return rows, note, nil
}

// sort sorts rows, stably. Without a column it keeps the order of the content, or reverses
// it. Rows without a value come last.
func (a Arrangement) sort(s widget.Content, rows []int) {
	if a.SortBy < 0 || a.SortBy >= len(s.Columns()) {
		if a.Descending {
			slices.Reverse(rows)
		}
		return
	}
	type sortKey struct {
		text  string
		value float64
		ok    bool
	}
	numeric := s.Numeric(a.SortBy)
	keys := make(map[int]sortKey, len(rows))
	for _, row := range rows {
		var k sortKey
		if numeric {
			k.value, k.ok = s.Value(row, a.SortBy)
		} else {
			k.text = s.Cell(row, a.SortBy)
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
		if a.Descending {
			return -order
		}
		return order
	})
}

// troubleFirst returns items in their order, those whose state is bad before the others.
func troubleFirst[T any](items []T, tone func(*T) widget.Tone) []T {
	inTrouble := func(item *T) bool { return tone(item) == widget.Bad }
	if !slices.ContainsFunc(items, func(item T) bool { return inTrouble(&item) }) {
		return items
	}
	ordered := make([]T, 0, len(items))
	for _, trouble := range []bool{true, false} {
		for i := range items {
			if inTrouble(&items[i]) == trouble {
				ordered = append(ordered, items[i])
			}
		}
	}
	return ordered
}
