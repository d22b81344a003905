// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

const (
	// nameFormat is the format of columns that name a row, as in tables of Kubernetes.
	nameFormat = "name"
	nothing    = "-"
	// longBelow is the length from which on a text below a row has lines of its own.
	longBelow = 40
)

// ListOptions say how a table is cut.
type ListOptions struct {
	// Limit is the number of rows, 0 for all. On a terminal of a known height, the rows that
	// it has room for are fewer or more than TerminalRows.
	Limit int
	// Last shows the last rows in place of the first ones.
	Last bool
	// Hint says how to see all rows.
	Hint string
}

// List writes a table for a terminal. A column with one value is a line below the table. Where
// the lines are too long, columns go below the rows, first the ones that few rows need. Rows that
// are cut are counted.
func List(w io.Writer, table *metav1.Table, cut ListOptions, opts Options) error {
	p := NewPage(opts)
	p.list(table, cut)
	_, err := w.Write(p.Buf.Bytes())
	return err
}

const (
	// leastRows is how many rows a list has on any terminal, belowRows how many lines are kept
	// for the number of rows that are cut, the total and the prompt.
	leastRows = 6
	belowRows = 3
)

// list adds a list.
func (p *Page) list(table *metav1.Table, cut ListOptions) {
	columns := listColumns(table)
	fold(columns, len(table.Rows), p.full)
	foot := NewPage(p.Opts)
	foot.everywhere("In all rows: ", columns, func(c *listColumn) bool { return c.exceptions == 0 })
	foot.everywhere("In all other rows: ", columns, func(c *listColumn) bool { return c.exceptions > 0 })
	draw := func(row int) *Page {
		one := NewPage(p.Opts)
		one.listRow(columns, row)
		return one
	}
	head := draw(-1)
	rows := p.cutRows(len(table.Rows), p.Opts.Height-belowRows-p.Lines()-head.Lines()-foot.Lines(), cut, draw)
	more := ""
	if n := len(table.Rows) - len(rows); n > 0 {
		more = fmt.Sprintf("… %s more (%s)", english.Thousands(n), cut.Hint)
	}
	p.Buf.Write(head.Buf.Bytes())
	if more != "" && cut.Last {
		p.Text(0, Plain, more)
	}
	for _, row := range rows {
		p.Buf.Write(row.Buf.Bytes())
	}
	if more != "" && !cut.Last {
		p.Text(0, Plain, more)
	}
	p.Buf.Write(foot.Buf.Bytes())
}

// cutRows draws the rows of a table that are shown, in order: as many as there is room for on a
// terminal of a known height, at least leastRows.
func (p *Page) cutRows(total, room int, cut ListOptions, draw func(row int) *Page) []*Page {
	var rows []*Page
	for lines := 0; len(rows) < total; {
		row := len(rows)
		if cut.Last {
			row = total - 1 - row
		}
		one := draw(row)
		lines += one.Lines()
		if cut.Limit > 0 && len(rows) == cut.Limit || p.Opts.Height > 0 && len(rows) >= leastRows && lines > room {
			break
		}
		rows = append(rows, one)
	}
	if cut.Last {
		slices.Reverse(rows)
	}
	return rows
}

// listRow adds a row of a list, the titles for -1.
func (p *Page) listRow(columns []*listColumn, row int) {
	var cells []Cell
	for _, c := range columns {
		switch {
		case c.folded:
		case row < 0:
			cells = append(cells, Cell{Text: c.title, Width: c.width, Right: c.numeric, Mark: Strong})
		default:
			cells = append(cells, Cell{Text: c.cells[row], Width: c.width, Right: c.numeric})
		}
	}
	p.rowWithin(p.full, 0, cells)
	if row >= 0 {
		p.below(columns, row)
	}
}

// TerminalRows is how many rows a table has on a terminal of an unknown height: about a screen,
// and enough to see what there is.
const TerminalRows = 40

// table writes a table: a list for a terminal, else a line for each row.
func (p *Page) table(table *metav1.Table) error {
	if p.Opts.Width > 0 {
		p.list(table, ListOptions{Limit: max(TerminalRows, p.Opts.Height), Hint: "-o wide shows all"})
		return nil
	}
	aligned := printers.GetNewTabWriter(&p.Buf)
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, aligned); err != nil {
		return fmt.Errorf("print a table: %w", err)
	}
	return aligned.Flush()
}

// listColumn is a column of a [List].
type listColumn struct {
	label, title string
	cells        []string
	width        int
	// key is true for a column that names the row, numeric if all cells are numbers.
	key, numeric bool
	// common is the value of most rows, empty if there is none; exceptions counts the others.
	common     string
	exceptions int
	// folded is true for a column that is not in the table.
	folded bool
}

// listColumns returns the columns of a table that are not wide.
func listColumns(table *metav1.Table) []*listColumn {
	var columns []*listColumn
	for i, definition := range table.ColumnDefinitions {
		if definition.Priority > 0 {
			continue
		}
		c := &listColumn{
			label: strings.ToLower(definition.Name), title: strings.ToUpper(definition.Name), key: definition.Format == nameFormat, numeric: definition.Format != nameFormat,
		}
		counts := map[string]int{}
		for _, row := range table.Rows {
			text, _ := row.Cells[i].(string)
			c.cells = append(c.cells, text)
			c.numeric = c.numeric && isNumber(text)
			counts[text]++
			if counts[text] > counts[c.common] {
				c.common = text
			}
		}
		c.width = Widest(Unlimited, append(c.cells, c.title)...)
		c.exceptions = len(c.cells) - counts[c.common]
		// Three of four rows are most.
		if len(c.cells) == 1 || c.exceptions > len(c.cells)/4 {
			c.common = ""
		}
		columns = append(columns, c)
	}
	return columns
}

// isNumber reports whether a cell has a number or nothing.
func isNumber(text string) bool {
	text = strings.TrimSuffix(strings.TrimLeft(text, "≤≥"), "%")
	return text == nothing || text == "?" || text != "" && strings.Trim(text, "0123456789") == ""
}

// isBelow reports whether a folded column has something to say about a row.
func (c *listColumn) isBelow(row int) bool {
	if c.common != "" {
		return c.cells[row] != c.common
	}
	return c.cells[row] != nothing
}

// fold takes columns out of a table until its lines fit.
func fold(columns []*listColumn, rows, room int) {
	total, keys := -ColumnGap, 0
	for _, c := range columns {
		total += c.width + ColumnGap
		if c.key {
			keys++
		}
	}
	out := func(c *listColumn) {
		c.folded = true
		total -= c.width + ColumnGap
	}
	for _, c := range columns {
		switch {
		case c.common == "" || c.exceptions > 0:
		case !c.key:
			out(c)
		case keys > 1:
			keys--
			out(c)
		}
	}
	hasBelow := make([]bool, rows)
	for total > room {
		var best *listColumn
		most := 0.0
		for _, c := range columns {
			if c.key || c.folded {
				continue
			}
			lines := 1
			for row := range rows {
				if c.isBelow(row) && !hasBelow[row] {
					lines++
				}
			}
			if gain := float64(c.width+ColumnGap) / float64(lines); gain > most {
				best, most = c, gain
			}
		}
		if best == nil {
			return
		}
		out(best)
		for row := range rows {
			hasBelow[row] = hasBelow[row] || best.isBelow(row)
		}
	}
}

// below adds what folded columns say about a row. A long text has lines of its own.
func (p *Page) below(columns []*listColumn, row int) {
	const margin = 2
	var short, long []string
	for _, c := range columns {
		if !c.folded || !c.isBelow(row) {
			continue
		}
		text := c.label + " " + c.cells[row]
		if len(text) > longBelow {
			long = append(long, text)
			continue
		}
		short = append(short, text)
	}
	if short != nil {
		long = append([]string{strings.Join(short, ", ")}, long...)
	}
	for _, text := range long {
		p.Text(margin, Faint, text)
	}
}

// everywhere adds the values of the folded columns that most rows have.
func (p *Page) everywhere(start string, columns []*listColumn, wanted func(*listColumn) bool) {
	var texts []string
	for _, c := range columns {
		if c.folded && c.common != "" && c.common != nothing && wanted(c) {
			texts = append(texts, c.label+" "+c.common)
		}
	}
	if texts != nil {
		p.Text(0, Plain, start+strings.Join(texts, ", "))
	}
}

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
