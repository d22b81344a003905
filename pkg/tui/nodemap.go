// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// nodeMap shows the nodes of a list as a cell each. The list has the rows and which of
// them is selected.
type nodeMap struct {
	table *widget.Table
	// from is the picture that the rows are of.
	from *live.Picture
	grid widget.HeatMap
	// by puts the nodes into groups, order sorts them.
	by    inventory.Grouping
	order inventory.Order
	// room says on how many nodes the largest claims fit, see [views.NodeRoom].
	room     []string
	counting bool
	// counted is the change of the picture that it was counted on, at is when, and took how long
	// that took.
	counted int
	at      time.Time
	took    time.Duration
}

// roomMsg has the text about the room that is left.
type roomMsg struct {
	chart *nodeMap
	from  *live.Picture
	text  []string
	at    time.Time
	took  time.Duration
}

// roomTimes is how much longer than it takes to count room it stays as it is while the
// cluster changes.
const roomTimes = 30

// chooseOrder asks what the groups of the map are sorted by.
func (c *nodeMap) chooseOrder(h *host) tea.Cmd {
	return choose(h, "sort by", func() []widget.Found {
		var items []widget.Found
		for _, order := range inventory.Orders() {
			items = append(items, widget.Found{Name: order.String()})
		}
		return items
	}, func(item widget.Found) tea.Cmd {
		at := slices.IndexFunc(inventory.Orders(), func(o inventory.Order) bool { return o.String() == item.Name })
		return c.sort(h, at)
	})
}

// sort puts the groups of the map into one of the orders, counted round.
func (c *nodeMap) sort(h *host, at int) tea.Cmd {
	orders := inventory.Orders()
	c.order = orders[(at+len(orders))%len(orders)]
	c.draw(&h.look, c.from)
	c.move(-noLimit, 0)
	return h.top().refresh(h)
}

// draw makes the groups of the map out of the rows of the list; without a map it does nothing.
func (c *nodeMap) draw(l *widget.Look, from *live.Picture) {
	if c == nil {
		return
	}
	c.from = from
	content, rows := c.table.Shown()
	if content == nil || from == nil {
		return
	}
	c.grid.Set(views.NodeGroups(l, c.from.Cluster.Snapshot, views.NodesOf(content, rows), c.by, c.order))
	c.grid.Choose(c.table.SelectedKey())
}

// letGo forgets the pictures that the map is of; without a map it does nothing.
func (c *nodeMap) letGo() {
	if c != nil {
		c.from = nil
	}
}

// move moves the cursor of the map, and the list's with it.
func (c *nodeMap) move(right, down int) {
	c.grid.Right(right)
	c.grid.Down(down)
	c.table.Choose(c.grid.Selected())
}

// click selects a cell. It reports whether that was selected already.
func (c *nodeMap) click(x, y int) (again bool) {
	again, found := c.grid.Click(x, y-1)
	c.table.Choose(c.grid.Selected())
	return again && found
}

// actions returns what keys do on the map.
func (c *nodeMap) actions(h *host) []action {
	k := &h.keys
	move := func(right, down int) func() tea.Cmd { return just(func() { c.move(right, down) }) }
	page := c.table.Lines()
	return append([]action{
		{k.down, keysMove, move(0, 1)},
		{k.up, keysMove, move(0, -1)},
		{k.left, keysMove, move(-1, 0)},
		{k.right, keysMove, move(1, 0)},
		{k.pageDown, keysMove, move(0, page)},
		{k.pageUp, keysMove, move(0, -page)},
		{k.top, keysMove, move(-noLimit, 0)},
		{k.end, keysMove, move(noLimit, 0)},
		{k.sort, keysFind, func() tea.Cmd { return c.chooseOrder(h) }},
		{k.sortNext, keysFind, func() tea.Cmd { return c.sort(h, int(c.order)+1) }},
		{k.sortPrev, keysFind, func() tea.Cmd { return c.sort(h, int(c.order)-1) }},
	}, c.orders(h)...)
}

// orders returns the keys that sort the map.
func (c *nodeMap) orders(h *host) []action {
	k := &h.keys
	by := func(order inventory.Order) func() tea.Cmd {
		return func() tea.Cmd {
			if c.order == order {
				// The second time leads back.
				order = inventory.ByName
			}
			return c.sort(h, int(order))
		}
	}
	return []action{
		{k.used, keysFind, by(inventory.ByUsed)},
		{k.fragmented, keysFind, by(inventory.ByFragmented)},
		{k.whole, keysFind, by(inventory.ByWhole)},
		{k.trouble, keysFind, by(inventory.ByTrouble)},
	}
}

// view draws how much room is left, the map, and below what the signs mean.
func (c *nodeMap) view(h *host) string {
	width, height := c.table.Size()
	var below []string
	if c.legendApart(h) {
		below = []string{""}
	}
	c.grid.SetSize(width, height-1-len(below))
	if len(below) > 0 {
		below[0] = " " + h.look.Fitting(append([]string{c.orderText()}, c.legend(h)...), width-1)
	}
	room := cmp.Or(strings.Join(c.texts(), "; "), h.look.Glyphs.More)
	lines := []string{h.look.Say(widget.Strong, ansi.Truncate(" "+room, width, h.look.Glyphs.More))}
	return strings.Join(append(append(lines, c.grid.View(&h.look, true)...), below...), "\n")
}

// texts say how much room is left, as far as that is known; without a map there are none.
func (c *nodeMap) texts() []string {
	if c == nil {
		return nil
	}
	var texts []string
	for _, text := range c.room {
		texts = append(texts, render.Escape(text))
	}
	return texts
}

// legendApart reports whether the legend needs a line of its own, since there is too little
// room beside the text.
func (c *nodeMap) legendApart(h *host) bool { return h.width < mapLegendBeside }

// mapLegendBeside is the width from which on both are in one line.
const mapLegendBeside = 130

// legend explains the cells.
func (c *nodeMap) legend(h *host) []string { return views.NodeLegend(&h.look, c.grid.Narrow()) }

// orderText names the order of the map; it is empty for the one by name.
func (c *nodeMap) orderText() string {
	if c.order == inventory.ByName {
		return ""
	}
	return "most " + c.order.String() + " first"
}

// foot describes the map, with its legend.
func (c *nodeMap) foot(h *host) string {
	content, rows := c.table.Shown()
	selected := c.table.SelectedKey()
	if n, ok := c.table.Selected().(*inventory.Node); ok && c.legendApart(h) {
		selected = views.AboutNode(n)
	}
	selected = render.Escape(selected)
	text := selected + "   " + views.NodesText(views.NodesOf(content, rows), 0)
	if c.by.Any() {
		text += ", by " + render.Escape(c.by.String())
	}
	if order := c.orderText(); order != "" && !c.legendApart(h) {
		text += ", " + order
	}
	if lines := c.grid.Lines(); lines != "" {
		text += ", " + lines
	}
	if ansi.StringWidth(text) > h.width {
		text = selected
	}
	text = h.look.Say(widget.Faint, text)
	if !c.legendApart(h) {
		text += "   " + h.look.Fitting(c.legend(h), h.width-3-ansi.StringWidth(text))
	}
	return ansi.Truncate(text, h.width, h.look.Glyphs.More)
}

// count counts in the background on how many nodes the largest claims fit, unless nothing
// changed since it was counted, or that was a moment ago.
func (c *nodeMap) count(h *host) tea.Cmd {
	if c == nil || c.counting || h.live.Picture() == nil || !c.at.IsZero() && (c.counted == h.live.Picture().Change() || h.now().Sub(c.at) < roomTimes*c.took) {
		return nil
	}
	c.counting = true
	ctx, p, now := h.ctx, h.live.Picture(), h.now()
	return func() tea.Msg {
		start := time.Now()
		text, err := views.NodeRoom(ctx, p.Cluster, p.Inventory)
		if err != nil {
			text = []string{"not known on how many nodes large claims fit: " + err.Error()}
		}
		return roomMsg{c, p, text, now, time.Since(start)}
	}
}

func (msg roomMsg) arrive(h *host) tea.Cmd {
	c := msg.chart
	c.counting = false
	c.room, c.counted, c.at, c.took = msg.text, msg.from.Change(), msg.at, msg.took
	// The picture may be another one by now.
	return tea.Batch(c.count(h), h.top().refresh(h))
}
