// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// content is what a list shows. Cells are made when they are asked for.
type content interface {
	columns() []string
	// only leaves the columns with these titles, in that order.
	only(titles []string)
	rows() int
	cell(row, column int) string
	// value is what a column is sorted by; false if that is its text.
	value(row, column int) (float64, bool)
	// numeric reports whether any value of a column is a number.
	numeric(column int) bool
	// key tells rows apart, in this picture and the next.
	key(row int) string
	// item is a pointer to what the row is about.
	item(row int) any
	// pinned is how many of the first columns tell which row it is.
	pinned() int
	// remark is what else there is to say about a row, in one line.
	remark(row int) string
	// paint colors the text of a cell, which may have been cut or filled up.
	paint(l *look.Look, row, column int, text string) string
}

// listOf is a content over items of the inventory.
type listOf[T any] struct {
	items []T
	cols  []render.Column[T]
	id    func(*T) string
	state func(*T) look.Tone
	// pins is how many columns are pinned, 0 for one.
	pins int
	// say is the remark about an item; nil if there are none.
	say func(*T) string
	// stateColumn is the title of the column that state is about.
	stateColumn string
}

func (l *listOf[T]) columns() []string {
	titles := make([]string, 0, len(l.cols))
	for i := range l.cols {
		titles = append(titles, l.cols[i].Name)
	}
	return titles
}

func (l *listOf[T]) rows() int                   { return len(l.items) }
func (l *listOf[T]) cell(row, column int) string { return l.cols[column].Text(&l.items[row]) }
func (l *listOf[T]) numeric(column int) bool     { return l.cols[column].Sort != nil }
func (l *listOf[T]) key(row int) string          { return l.id(&l.items[row]) }
func (l *listOf[T]) item(row int) any            { return &l.items[row] }

func (l *listOf[T]) pinned() int { return max(l.pins, 1) }

func (l *listOf[T]) remark(row int) string {
	if l.say == nil {
		return ""
	}
	return l.say(&l.items[row])
}

func (l *listOf[T]) value(row, column int) (float64, bool) {
	if sort := l.cols[column].Sort; sort != nil {
		return sort(&l.items[row])
	}
	return 0, false
}

func (l *listOf[T]) paint(on *look.Look, row, column int, text string) string {
	if l.state == nil || l.cols[column].Name != l.stateColumn {
		return text
	}
	return on.Say(l.state(&l.items[row]), text)
}

// first puts the columns with these titles before the others: what matters most
// has to be seen on a narrow terminal, too.
func first[T any](columns []render.Column[T], titles ...string) []render.Column[T] {
	place := func(c render.Column[T]) int {
		if at := slices.Index(titles, c.Name); at >= 0 {
			return at
		}
		return len(titles)
	}
	slices.SortStableFunc(columns, func(a, b render.Column[T]) int { return cmp.Compare(place(a), place(b)) })
	return columns
}
