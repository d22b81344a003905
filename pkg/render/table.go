// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Column is a column of a table; a wide one is only shown with -o wide.
type Column[T any] struct {
	Name string
	Wide bool
	// Key is true for a column that names the item: it stays on its line.
	Key bool
	// Cell is the text for an item, as it comes from the cluster.
	Cell func(*T) string
	// Sort returns the value to sort by, if that is not the text; ok is false if the item
	// has no such value.
	Sort func(*T) (value float64, ok bool)
}

// Text returns what to print for an item: escaped, and "-" if there is nothing, so that
// lines have the same number of words.
func (c *Column[T]) Text(item *T) string { return cmp.Or(Escape(c.Cell(item)), "-") }

// NewTable fills in the columns for each item.
func NewTable[T any](items []*T, columns []Column[T]) *metav1.Table {
	table := &metav1.Table{}
	for _, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.Name, Type: "string"}
		if c.Wide {
			definition.Priority = 1
		}
		if c.Key {
			definition.Format = nameFormat
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, item := range items {
		row := metav1.TableRow{}
		for i := range columns {
			row.Cells = append(row.Cells, columns[i].Text(item))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}
