// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"cmp"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Content is the content of a list. Cells are made on demand.
type Content interface {
	Columns() []string
	// Only leaves the columns with these titles, in that order.
	Only(titles []string)
	Rows() int
	Cell(row, column int) string
	// Value returns the sort key of a column; false if that is its text.
	Value(row, column int) (float64, bool)
	// Numeric reports whether any value of a column is a number.
	Numeric(column int) bool
	// Key tells rows apart, in this picture and the next.
	Key(row int) string
	// Item is a pointer to what the row is about.
	Item(row int) any
	// Pinned is how many of the first columns tell which row it is.
	Pinned() int
	// Remark returns a further remark about a row, in one line.
	Remark(row int) string
	// Paint colors the text of a cell, which may have been cut or filled up.
	Paint(l *Look, row, column int, text string) string
}

// ListOf is a content over items of the inventory.
type ListOf[T any] struct {
	Items []T
	Cols  []render.Column[T]
	ID    func(*T) string
	State func(*T) Tone
	// Pins is how many columns are pinned, 0 for one.
	Pins int
	// Say is the remark about an item; nil if there are none.
	Say func(*T) string
	// StateColumn is the title of the column that state is about.
	StateColumn string
}

// Columns returns the titles.
func (l *ListOf[T]) Columns() []string {
	titles := make([]string, 0, len(l.Cols))
	for i := range l.Cols {
		titles = append(titles, l.Cols[i].Name)
	}
	return titles
}

// Rows returns how many items there are.
func (l *ListOf[T]) Rows() int { return len(l.Items) }

// Cell returns the text of a column about an item.
func (l *ListOf[T]) Cell(row, column int) string { return l.Cols[column].Text(&l.Items[row]) }

// Numeric reports whether a column has a value to sort by.
func (l *ListOf[T]) Numeric(column int) bool { return l.Cols[column].Sort != nil }

// Key tells items apart.
func (l *ListOf[T]) Key(row int) string { return l.ID(&l.Items[row]) }

// Item returns a pointer to an item.
func (l *ListOf[T]) Item(row int) any { return &l.Items[row] }

// Pinned returns the number of pinned columns, at least one.
func (l *ListOf[T]) Pinned() int { return max(l.Pins, 1) }

// Remark returns a further remark about a row, empty if there is none.
func (l *ListOf[T]) Remark(row int) string {
	if l.Say == nil {
		return ""
	}
	return l.Say(&l.Items[row])
}

// Value returns the number that an item is sorted by.
func (l *ListOf[T]) Value(row, column int) (float64, bool) {
	if sort := l.Cols[column].Sort; sort != nil {
		return sort(&l.Items[row])
	}
	return 0, false
}

// Paint colors the column that has the state.
func (l *ListOf[T]) Paint(on *Look, row, column int, text string) string {
	if l.State == nil || l.Cols[column].Name != l.StateColumn {
		return text
	}
	return on.Say(l.State(&l.Items[row]), text)
}

// Only leaves the columns with these titles, in that order.
func (l *ListOf[T]) Only(titles []string) {
	all := l.Cols
	l.Cols = nil
	for _, title := range titles {
		for i := range all {
			if all[i].Name == title {
				l.Cols = append(l.Cols, all[i])
			}
		}
	}
	l.Pins = min(l.Pins, len(l.Cols))
}

// First puts the columns with these titles before the others: what matters most
// has to be seen on a narrow terminal, too.
func First[T any](columns []render.Column[T], titles ...string) []render.Column[T] {
	place := func(c render.Column[T]) int {
		if at := slices.Index(titles, c.Name); at >= 0 {
			return at
		}
		return len(titles)
	}
	slices.SortStableFunc(columns, func(a, b render.Column[T]) int { return cmp.Compare(place(a), place(b)) })
	return columns
}
