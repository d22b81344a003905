// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// page is the page of an explanation.
type page struct {
	*render.Page
	// oneNode is set if all devices are on one node, so that their names tell more than its
	// name.
	oneNode bool
}

// newPage makes an empty page.
func newPage(opts render.Options) *page { return &page{Page: render.NewPage(opts)} }

const (
	// briefLabel is the width of the column of labels.
	briefLabel = len("Why here")
	// noteLines limits the lines of a fact or a note.
	noteLines = 3
)

// block is a part of a brief answer that is shown as a whole or not at all.
type block struct {
	text []byte
	// lines counts the lines, without commands.
	lines int
	// kind is the noun for a note in a count.
	kind string
}

// block returns what draws on an empty page of the same size.
func (p *page) block(draw func(*page)) block {
	part := newPage(p.Opts)
	draw(part)
	return block{text: part.Buf.Bytes(), lines: part.Lines()}
}

// place adds blocks to the page, and returns how many lines they take.
func (p *page) place(blocks ...block) int {
	for _, b := range blocks {
		p.Buf.Write(b.text)
	}
	return height(blocks...)
}

func height(blocks ...block) int {
	n := 0
	for _, b := range blocks {
		n += b.lines
	}
	return n
}

// placeable returns how many of the first blocks fit into so many lines.
func placeable(blocks []block, room int) int {
	for i, b := range blocks {
		if room -= b.lines; room < 0 {
			return i
		}
	}
	return len(blocks)
}

// labeled adds a text of at most so many lines beside its label; 0 means all.
func (p *page) labeled(label, text string, lines int) {
	if text != "" {
		p.Row(0, render.Cell{Text: label, Width: briefLabel, Mark: render.Strong}, render.Cell{Text: text, Lines: lines})
	}
}

// labels remembers the label of the line above, which is not repeated.
type labels struct{ last string }

func (l *labels) once(label string) string {
	if label == l.last {
		return ""
	}
	l.last = label
	return label
}
