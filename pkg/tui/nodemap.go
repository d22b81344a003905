// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/find"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/heatmap"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/nodemap"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// nodeMap shows the nodes of a list as a cell each. The list has the rows and which of
// them is selected.
type nodeMap struct {
	grid heatmap.Model
	// by puts the nodes into groups, order sorts them.
	by    nodemap.Grouping
	order nodemap.Order
	// room says on how many nodes the largest claims fit.
	room     string
	counting bool
	counted  *picture.Picture
	at       time.Time
	took     time.Duration
}

// roomMsg has the text about the room that is left.
type roomMsg struct {
	chart *nodeMap
	from  *picture.Picture
	text  string
	at    time.Time
	took  time.Duration
}

// roomTimes is how much longer than it takes to count room it stays as it is while the
// cluster changes.
const roomTimes = 30

// groups are those of the map of nodes, with their order.
func (s *listScreen) groups() (nodemap.Grouping, nodemap.Order) {
	if s.chart == nil {
		return nodemap.Grouping{}, nodemap.ByName
	}
	return s.chart.by, s.chart.order
}

// toggleMap shows nodes as a map, or as strips again.
func (s *listScreen) toggleMap(h *host) tea.Cmd {
	if s.chart != nil {
		s.chart = nil
		return nil
	}
	s.chart = &nodeMap{}
	s.drawMap(h)
	return s.chart.count(h)
}

// chooseGroups asks what the nodes of a group have in common.
func (s *listScreen) chooseGroups(h *host) tea.Cmd {
	if h.live.Picture() == nil {
		return nil
	}
	snap := h.live.Picture().Snap
	return choose(h, "group by", func() []find.Item {
		var items []find.Item
		for _, by := range nodemap.Groupings(snap.Nodes) {
			items = append(items, find.Item{Kind: by.Kind(), Name: by.String()})
		}
		return items
	}, func(item find.Item) tea.Cmd {
		if s.chart == nil {
			s.chart = &nodeMap{}
		}
		for _, by := range nodemap.Groupings(snap.Nodes) {
			if by.Kind() == item.Kind && by.String() == item.Name {
				s.chart.by = by
			}
		}
		s.drawMap(h)
		return s.chart.count(h)
	})
}

// chooseMapOrder asks what the groups of the map are sorted by.
func (s *listScreen) chooseMapOrder(h *host) tea.Cmd {
	return choose(h, "sort by", func() []find.Item {
		var items []find.Item
		for _, order := range nodemap.Orders() {
			items = append(items, find.Item{Name: order.String()})
		}
		return items
	}, func(item find.Item) tea.Cmd {
		at := slices.IndexFunc(nodemap.Orders(), func(o nodemap.Order) bool { return o.String() == item.Name })
		return s.sortMap(h, at)
	})
}

// sortMap puts the groups of the map into one of the orders, counted round.
func (s *listScreen) sortMap(h *host, at int) tea.Cmd {
	orders := nodemap.Orders()
	s.chart.order = orders[(at+len(orders))%len(orders)]
	s.drawMap(h)
	s.moveMap(-noLimit, 0)
	return nil
}

// drawMap makes the groups of the map out of the rows of the list.
func (s *listScreen) drawMap(h *host) {
	content, rows := s.table.Shown()
	if s.chart == nil || content == nil || s.from == nil {
		return
	}
	s.chart.grid.Set(nodemap.Groups(&h.look, s.from.Snap, views.NodesOf(content, rows), s.chart.by, s.chart.order))
	s.chart.grid.Choose(s.table.SelectedKey())
}

// moveMap moves the cursor of the map, and that of the list with it.
func (s *listScreen) moveMap(right, down int) {
	s.chart.grid.Right(right)
	s.chart.grid.Down(down)
	s.table.Choose(s.chart.grid.Selected())
}

// mapActions are what keys do on the map.
func (s *listScreen) mapActions(h *host) []action {
	k := &h.keys
	move := func(right, down int) func() tea.Cmd { return just(func() { s.moveMap(right, down) }) }
	page := s.table.Lines()
	by := func(order nodemap.Order) func() tea.Cmd {
		return func() tea.Cmd {
			if s.chart.order == order {
				// The second time leads back.
				order = nodemap.ByName
			}
			return s.sortMap(h, int(order))
		}
	}
	return []action{
		{k.down, keysMove, move(0, 1)},
		{k.up, keysMove, move(0, -1)},
		{k.left, keysMove, move(-1, 0)},
		{k.right, keysMove, move(1, 0)},
		{k.pageDown, keysMove, move(0, page)},
		{k.pageUp, keysMove, move(0, -page)},
		{k.top, keysMove, move(-noLimit, 0)},
		{k.end, keysMove, move(noLimit, 0)},
		{k.sort, keysFind, func() tea.Cmd { return s.chooseMapOrder(h) }},
		{k.sortNext, keysFind, func() tea.Cmd { return s.sortMap(h, int(s.chart.order)+1) }},
		{k.sortPrev, keysFind, func() tea.Cmd { return s.sortMap(h, int(s.chart.order)-1) }},
		{k.used, keysFind, by(nodemap.ByUsed)},
		{k.fragmented, keysFind, by(nodemap.ByFragmented)},
		{k.whole, keysFind, by(nodemap.ByWhole)},
		{k.trouble, keysFind, by(nodemap.ByTrouble)},
	}
}

// viewMap draws the map, the room that is left, and below what the signs mean.
func (s *listScreen) viewMap(h *host) string {
	width, height := s.table.Size()
	room := s.chart.room
	if room == "" {
		room = h.look.Glyphs.More
	}
	below := "\n" + ansi.Truncate(" "+render.Escape(room), width, h.look.Glyphs.More)
	if s.legendApart(h) {
		below += "\n" + ansi.Truncate(" "+nodemap.Legend(&h.look), width, h.look.Glyphs.More)
	}
	s.chart.grid.SetSize(width, height-strings.Count(below, "\n"))
	return s.chart.grid.View(&h.look) + below
}

// legendApart reports whether what the signs mean has a line of its own, since what is shown
// leaves too little room beside it.
func (s *listScreen) legendApart(h *host) bool { return h.width < mapLegendBeside }

// mapLegendBeside is the width from which on both are in one line.
const mapLegendBeside = 130

// mapFoot says what is shown, and what the signs mean.
func (s *listScreen) mapFoot(h *host) string {
	text := render.Escape(s.table.SelectedKey()) + "  " + nodemap.Count(s.table.Count())
	if s.chart.by.Any() {
		text += ", by " + render.Escape(s.chart.by.String())
	}
	if s.chart.order != nodemap.ByName {
		text += ", most " + s.chart.order.String() + " first"
	}
	if lines := s.chart.grid.Lines(); lines != "" {
		text += ", " + lines
	}
	text = h.look.Say(look.Faint, text)
	if !s.legendApart(h) {
		text += "   " + nodemap.Legend(&h.look)
	}
	return ansi.Truncate(text, h.width, h.look.Glyphs.More)
}

// count counts in the background on how many nodes the largest claims fit, unless that
// is known of this picture, or was counted a moment ago.
func (c *nodeMap) count(h *host) tea.Cmd {
	if c == nil || c.counting || h.live.Picture() == nil || c.counted == h.live.Picture() || c.counted != nil && h.now().Sub(c.at) < roomTimes*c.took {
		return nil
	}
	c.counting = true
	ctx, p, now := h.ctx, h.live.Picture(), h.now()
	return func() tea.Msg {
		start := time.Now()
		text, err := nodemap.Room(ctx, p.Snap, p.Alloc, p.Inventory)
		if err != nil {
			text = "not known on how many nodes large claims fit: " + err.Error()
		}
		return roomMsg{c, p, text, now, time.Since(start)}
	}
}

func (msg roomMsg) arrive(h *host) tea.Cmd {
	c := msg.chart
	c.counting = false
	c.room, c.counted, c.at, c.took = msg.text, msg.from, msg.at, msg.took
	// The picture may be another one by now.
	return c.count(h)
}
