// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

const (
	// wide is the width of a large page, pair the one from which on boxes stand beside each other.
	wide, pair = 150, 80
	// tall is the height from which on nodes are shown as signs.
	tall = 44
	// pairLines is the height from which on the verdict has two lines.
	pairLines = 26
	// separator is the width of the line between boxes beside each other.
	separator = 1
	// leastRemark is how many lines a small page with a map has for the selected row.
	leastRemark = 2
)

// box is a section with its place.
type box struct {
	name, title string
	// remarks stand beside the title, as far as they fit.
	remarks []string
	// rows makes all rows of a width, and the titles above them.
	rows  func(width int) (head string, rows []string)
	count int
	// id is the key of a row, open what it opens.
	id   func(i int) string
	open func(i int) any
	// item returns the item of a row, about the title and the paragraphs of its description, and
	// lines draw more than these. They may be nil.
	item  func(i int) any
	about func(i int) (title string, text []string)
	lines func(i int) func(width int) []string
	all   any
	none  string
	// rest counts the rows that are not shown; nil for their number.
	rest func(shown int) string
	// under are the lines of rows that have several: the first is the row, and the others stand under it.
	under map[int][]string
	// cells are the cells of a map, in place of rows. The box has one key then.
	cells *widget.HeatMap

	width int
	// height is how many lines there are below the title, shown how many rows are on them.
	height, shown int
}

// keys returns the keys of the shown rows, and of the line that stands for the others. Rows
// that cannot be opened have none.
func (b *box) keys() []string {
	switch {
	case b.id == nil, b.shown == 0:
		return nil
	case b.cells != nil:
		return []string{b.name + " " + b.id(0)}
	}
	keys := make([]string, 0, b.shown+1)
	for i := range b.shown {
		keys = append(keys, b.name+" "+b.id(i))
	}
	if b.hasRest() {
		keys = append(keys, b.name)
	}
	return keys
}

// hasRest reports whether there is a line that stands for the rows that are not shown.
func (b *box) hasRest() bool {
	return b.cells == nil && b.all != nil && b.shown < b.count && b.shown < b.height
}

// selected returns the box with a row of a key, and the row: a negative one for the line that stands
// for others, and for no row.
func (s *screen) selected(key string) (*box, int) {
	for _, b := range s.boxes() {
		if at := slices.Index(b.keys(), key); at >= 0 && at < b.shown {
			return b, at
		}
	}
	return nil, -1
}

// rowAt returns the row on a line below the title; a negative one for the title.
func (b *box) rowAt(line int) int {
	if line < 0 {
		return line
	}
	for i := range b.shown {
		if line -= max(len(b.under[i]), 1); line < 0 {
			return i
		}
	}
	return line + b.shown
}

// opens returns the item behind the row, or the line, with a key.
func (b *box) opens(at int) any {
	if at < b.shown {
		return b.open(at)
	}
	return b.all
}

// wants returns how many lines it would like to have; it is for cells as many as they get.
func (b *box) wants() int {
	if b.cells != nil {
		return 1
	}
	return max(b.count, 1)
}

// needs returns how many lines come before what others want: for the cells of a map, which are as
// wide as they can be on a third of the page. Where that is too little for all of them, they get
// half of it or, where that is too little, too, and the page is low, a sixth: causes matter more than a
// part of a map.
func (b *box) needs(height int) int {
	if b.cells == nil {
		return 1
	}
	for cell := widget.MaxCell; cell > 0; cell-- {
		if lines := b.cells.LinesOf(b.width, cell); lines <= height/3 {
			return max(lines, 1)
		}
	}
	if lines := b.cells.LinesOf(b.width, 1); lines <= height/2 {
		return max(lines, 1)
	}
	if height < tall {
		return max(height/6, 1)
	}
	return height / 2
}

// give sets the height. If that is too little, the last line stands for the rows that
// are missing, unless there are hardly any lines.
func (b *box) give(lines int) {
	b.height, b.shown = lines, min(b.count, lines)
	if b.cells != nil {
		b.cells.SetSize(b.width, lines)
		return
	}
	if b.count > lines && lines > 2 && b.all != nil {
		b.shown = lines - 1
	}
}

// group is a box, or two beside each other.
type group struct {
	boxes  []box
	height int
}

func (g *group) wants() int {
	most := 1
	for i := range g.boxes {
		most = max(most, g.boxes[i].wants())
	}
	return most
}

// screen says what stands where.
type screen struct {
	verdict               []string
	left, right           []group
	leftWidth, rightWidth int
	// above and below are the groups before and after those on the left that there is no
	// room for.
	above, below []group
	// remark is how many lines at the bottom are for what there is to say about the
	// selected row.
	remark int
}

// boxes returns all of them, in the order of the cursor.
func (s *screen) boxes() []*box {
	var boxes []*box
	for _, groups := range [][]group{s.above, s.left, s.below, s.right} {
		for i := range groups {
			for j := range groups[i].boxes {
				boxes = append(boxes, &groups[i].boxes[j])
			}
		}
	}
	return boxes
}

// layout divides the page. Where there is too little room for all boxes, those around
// the cursor are shown.
func (p *Page) layout() *screen {
	s := &screen{leftWidth: p.leftWidth(), verdict: p.verdict(p.width)}
	capacity, causes, nodes, stuck, teams, events := p.capacity(), p.causes(), p.nodes(), p.stuck(), p.teams(), p.events()
	switch {
	case p.plain:
		s.left = groups([]box{capacity}, []box{causes}, []box{stuck}, []box{teams})
		if events.count > 0 {
			s.left = append(s.left, groups([]box{events})...)
		}
	case p.pane > 0:
		s.rightWidth = p.width - s.leftWidth
		s.left = groups([]box{capacity}, []box{causes}, []box{stuck}, []box{nodes}, []box{teams})
		s.right = groups([]box{{name: "pane"}}, []box{events})
	default:
		s.left = groups([]box{capacity}, []box{causes}, []box{stuck}, []box{nodes}, []box{teams})
		s.remark = min(p.height/6, 3)
	}
	if nodes.count == 0 {
		s.left = slices.DeleteFunc(s.left, func(g group) bool { return g.boxes[0].cells != nil })
	} else if s.remark > leastRemark && p.height < pairLines {
		s.remark = leastRemark
	}
	switch last := len(s.left) - 1; {
	case p.plain:
	case p.model.Events.None == "" && events.count == 0:
		// A file has no events.
		s.right = s.right[:min(len(s.right), 1)]
	case p.pane > 0:
	case p.width >= pair:
		s.left[last].boxes = append(s.left[last].boxes, events)
	default:
		s.left = append(s.left, groups([]box{events})...)
	}
	place(s.left, s.leftWidth)
	if p.plain {
		for i := range s.left {
			spread(s.left[i:i+1], s.left[i].wants()+1)
		}
		return s
	}
	height := p.height - len(s.verdict) - s.remark
	s.above, s.left, s.below = p.fit(s.left, height)
	p.unfold(s.left, height)
	if len(s.right) > 0 {
		b, at := s.selected(p.selected)
		s.right[0].boxes[0] = p.details(b, at, s.rightWidth-separator)
		place(s.right, s.rightWidth-separator)
		spread(s.right, height)
		stretch(s.right, height)
	}
	return s
}

// leftWidth returns what a pane on the right leaves.
func (p *Page) leftWidth() int {
	return p.width - p.pane
}

func groups(list ...[]box) []group {
	groups := make([]group, 0, len(list))
	for _, boxes := range list {
		groups = append(groups, group{boxes: boxes})
	}
	return groups
}

// place sets the widths.
func place(groups []group, width int) {
	for i := range groups {
		boxes := groups[i].boxes
		boxes[0].width = width
		if len(boxes) > 1 {
			boxes[1].width = width * 9 / 20
			boxes[0].width = width - boxes[1].width - separator
		}
	}
}

// fit gives groups their heights. If there is too little room, those around the cursor
// are shown.
func (p *Page) fit(groups []group, height int) (above, shown, below []group) {
	const least = 1 + 4
	room := max(height/least, 1)
	if len(groups) <= room {
		spread(groups, height)
		return nil, groups, nil
	}
	first := 0
	for i := range groups {
		for j := range groups[i].boxes {
			b := &groups[i].boxes[j]
			b.give(1)
			if strings.HasPrefix(p.selected+" ", b.name+" ") {
				first = min(max(i-room+1, 0), len(groups)-room)
			}
		}
	}
	spread(groups[first:first+room], height)
	return groups[:first], groups[first : first+room], groups[first+room:]
}

// spread gives each group a line after the other, as long as it wants one.
func spread(groups []group, height int) {
	left := height
	wants := make([]int, len(groups))
	for i := range groups {
		groups[i].height, wants[i] = groups[i].boxes[0].needs(height), groups[i].wants()
		left -= groups[i].height + 1
	}
	for given := true; given && left > 0; {
		given = false
		for i := range groups {
			if left > 0 && groups[i].height < wants[i] {
				groups[i].height++
				left--
				given = true
			}
		}
	}
	for i := range groups {
		for j := range groups[i].boxes {
			groups[i].boxes[j].give(groups[i].height)
		}
	}
}

// stretch gives the last group the remaining lines.
func stretch(groups []group, height int) {
	for i := range groups {
		height -= groups[i].height + 1
	}
	last := &groups[len(groups)-1]
	last.height += max(height, 0)
	for i := range last.boxes {
		last.boxes[i].give(last.height)
	}
}

// at returns the box at a place of the page, nil if there is none, and the place within its rows.
func (s *screen) at(x, y int) (b *box, column, row int) {
	groups, from := s.left, 0
	if x >= s.leftWidth {
		groups, from = s.right, s.leftWidth+separator
	}
	line := y - len(s.verdict)
	for _, g := range groups {
		if line > g.height {
			line -= g.height + 1
			continue
		}
		for i := range g.boxes {
			b := &g.boxes[i]
			if x >= from && x < from+b.width {
				return b, x - from, b.rowAt(line - 1)
			}
			from += b.width + separator
		}
		return nil, 0, 0
	}
	return nil, 0, 0
}

// verdict returns the marks, on as many lines as they need, but two at most, and one where there
// are few lines.
func (p *Page) verdict(width int) []string {
	most := 2
	if p.height < pairLines {
		most = 1
	}
	const between = "   "
	more := between + p.look.Glyphs.More
	lines := []string{""}
marks:
	for i, mark := range p.model.Verdict {
		room := width
		if i < len(p.model.Verdict)-1 && len(lines) == most {
			room -= ansi.StringWidth(more)
		}
		text := p.look.Say(mark.Tone, mark.Sign) + " " + render.Escape(mark.Text)
		last := lines[len(lines)-1]
		switch {
		case last == "":
			lines[len(lines)-1] = " " + text
		case ansi.StringWidth(last+between+text) <= room:
			lines[len(lines)-1] = last + between + text
		case len(lines) == most && !p.plain:
			// A part of a mark says nothing.
			lines[len(lines)-1] = last + more
			break marks
		default:
			lines = append(lines, " "+text)
		}
	}
	for i := range lines {
		if !p.plain {
			lines[i] = ansi.Truncate(lines[i], width, p.look.Glyphs.More)
		}
	}
	return lines
}
