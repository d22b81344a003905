// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/simulate"
	"github.com/kubectl-dra/kubectl-dra/pkg/simulate/fit"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/find"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/heatmap"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// nodeMap shows the nodes of a list as a cell each. The list has the rows and which of
// them is selected.
type nodeMap struct {
	grid heatmap.Model
	// by is the label that groups the nodes, empty for none.
	by string
	// room says on how many nodes the largest claims fit.
	room     string
	counting bool
	counted  *picture
	at       time.Time
	took     time.Duration
}

// roomMsg has the text about the room that is left.
type roomMsg struct {
	chart *nodeMap
	from  *picture
	text  string
	at    time.Time
	took  time.Duration
}

// roomTimes is how much longer than it takes to count room it stays as it is while the
// cluster changes.
const roomTimes = 30

// toggleMap shows nodes as a map, or as strips again.
func (s *listScreen) toggleMap(m *Model) tea.Cmd {
	if s.chart != nil {
		s.chart = nil
		return nil
	}
	s.chart = &nodeMap{}
	s.drawMap(m)
	return s.chart.count(m)
}

// chooseGroups asks for the label by which the map puts nodes together.
func (s *listScreen) chooseGroups(m *Model) tea.Cmd {
	if m.picture == nil {
		return nil
	}
	const none = "no label"
	snap := m.picture.snap
	return m.choose("group by", func() []find.Item {
		keys := map[string]bool{}
		for _, node := range snap.Nodes {
			for key := range node.Labels {
				keys[key] = true
			}
		}
		items := []find.Item{{Name: none}}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			items = append(items, find.Item{Name: key})
		}
		return items
	}, func(item find.Item) tea.Cmd {
		if s.chart == nil {
			s.chart = &nodeMap{}
		}
		if s.chart.by = item.Name; item.Name == none {
			s.chart.by = ""
		}
		s.drawMap(m)
		return s.chart.count(m)
	})
}

// drawMap makes the groups of the map out of the rows of the list.
func (s *listScreen) drawMap(m *Model) {
	content, ok := s.table.content.(*nodeContent)
	if s.chart == nil || !ok || s.from == nil {
		return
	}
	type group struct {
		heatmap.Group
		used, total, whole int
	}
	groups := map[string]*group{}
	for _, row := range s.table.rows {
		n := &content.items[row]
		name := ""
		if node := s.from.snap.Node(n.Name); node != nil && s.chart.by != "" {
			name = node.Labels[s.chart.by]
		}
		g := groups[name]
		if g == nil {
			g = &group{Group: heatmap.Group{Name: name}}
			groups[name] = g
		}
		glyph, tone := nodeCell(&m.look, n)
		g.Cells = append(g.Cells, heatmap.Cell{Key: content.key(row), Glyph: glyph, Tone: tone})
		g.used, g.total = g.used+n.Devices.Allocated+n.Devices.Shared, g.total+n.Devices.Total
		if n.Devices.Free == n.Devices.Total && n.Devices.Total > 0 && n.State != "NotReady" && !n.Cordoned {
			g.whole++
		}
	}
	list := make([]heatmap.Group, 0, len(groups))
	for _, name := range slices.SortedFunc(maps.Keys(groups), naming.Compare) {
		g := groups[name]
		if s.chart.by != "" {
			if g.Name == "" {
				g.Name = "(none)"
			}
			g.Note = fmt.Sprintf("%3d %%  %d all free", g.used*100/max(g.total, 1), g.whole)
		}
		list = append(list, g.Group)
	}
	s.chart.grid.Set(list)
	s.chart.grid.Choose(s.table.key)
}

// nodeCell is the sign of a node: what is wrong with it or else how much is used.
func nodeCell(l *look.Look, n *inventory.Node) (string, look.Tone) {
	c := &n.Devices
	switch {
	case n.State == "NotReady", n.State == "Gone", c.Unusable > 0 && c.Unusable == c.Total:
		return l.Glyphs.Unhealthy, look.Bad
	case n.Cordoned:
		return l.Glyphs.Closed, look.Warning
	case c.Tainted > 0, c.TaintedInUse > 0:
		return l.Glyphs.Tainted, look.Warning
	}
	level := (c.Allocated + c.Shared) * len(l.Glyphs.Levels) / max(c.Total, 1)
	tone := look.Busy
	if c.Free == c.Total {
		tone = look.Good
	}
	return l.Glyphs.Levels[min(level, len(l.Glyphs.Levels)-1)], tone
}

// moveMap moves the cursor of the map, and that of the list with it.
func (s *listScreen) moveMap(right, down int) {
	s.chart.grid.Right(right)
	s.chart.grid.Down(down)
	s.table.choose(s.chart.grid.Selected())
}

// mapActions are what keys do on the map.
func (s *listScreen) mapActions(m *Model) []action {
	k := &m.keys
	move := func(right, down int) func() tea.Cmd { return just(func() { s.moveMap(right, down) }) }
	page := s.table.lines()
	return []action{
		{k.down, keysMove, move(0, 1)},
		{k.up, keysMove, move(0, -1)},
		{k.left, keysMove, move(-1, 0)},
		{k.right, keysMove, move(1, 0)},
		{k.pageDown, keysMove, move(0, page)},
		{k.pageUp, keysMove, move(0, -page)},
		{k.top, keysMove, move(-noLimit, 0)},
		{k.end, keysMove, move(noLimit, 0)},
	}
}

// viewMap draws the map, the room that is left, and below what the signs mean.
func (s *listScreen) viewMap(m *Model) string {
	width, height := s.table.width, s.table.height
	s.chart.grid.SetSize(width, height-1)
	room := s.chart.room
	if room == "" {
		room = m.look.Glyphs.More
	}
	return s.chart.grid.View(&m.look) + "\n" + ansi.Truncate(" "+render.Escape(room), width, m.look.Glyphs.More)
}

// mapFoot says what is shown, and what the signs mean.
func (s *listScreen) mapFoot(m *Model) string {
	g := &m.look.Glyphs
	text := render.Escape(s.table.key) + "  " + countNodes(len(s.table.rows))
	if s.chart.by != "" {
		text += " by " + render.Escape(s.chart.by)
	}
	if lines := s.chart.grid.Lines(); lines != "" {
		text += ", " + lines
	}
	text = m.look.Say(look.Faint, text+"   ") + m.look.Say(look.Busy, g.Levels[0]+g.More+g.Levels[len(g.Levels)-1]) + " used  " +
		m.look.Say(look.Warning, g.Closed) + " cordoned  " + m.look.Say(look.Warning, g.Tainted) + " tainted  " + m.look.Say(look.Bad, g.Unhealthy) + " not ready or usable"
	return ansi.Truncate(text, m.width, g.More)
}

// count counts in the background on how many nodes the largest claims fit, unless that
// is known of this picture, or was counted a moment ago.
func (c *nodeMap) count(m *Model) tea.Cmd {
	if c == nil || c.counting || m.picture == nil || c.counted == m.picture || c.counted != nil && m.now().Sub(c.at) < roomTimes*c.took {
		return nil
	}
	c.counting = true
	ctx, p, now := m.ctx, m.picture, m.now()
	return func() tea.Msg {
		start := time.Now()
		text, err := p.room(ctx)
		if err != nil {
			text = "not known on how many nodes large claims fit: " + err.Error()
		}
		return roomMsg{c, p, text, now, time.Since(start)}
	}
}

func (c *nodeMap) set(msg roomMsg) {
	c.counting = false
	c.room, c.counted, c.at, c.took = msg.text, msg.from, msg.at, msg.took
}

// room says on how many nodes a claim fits for as many devices of the most common class
// as one node has, and how many nodes have some of them available.
func (p *picture) room(ctx context.Context) (string, error) {
	classes, err := p.inventory.Classes(ctx)
	if err != nil {
		return "", err
	}
	if len(classes) == 0 {
		return "no DeviceClasses", nil
	}
	class := slices.MaxFunc(classes, func(a, b api.Class) int { return a.Devices - b.Devices })
	ids, _, err := p.inventory.Choose(ctx, p.snap.Class(class.Name).Spec.Selectors)
	if err != nil {
		return "", err
	}
	perNode, most := map[string]int{}, 0
	for _, id := range ids {
		if d := p.alloc.Facts.Pools.Device(id); d != nil {
			if node, _ := inventory.DeviceScope(d); node != "" {
				perNode[node]++
				most = max(most, perNode[node])
			}
		}
	}
	if most == 0 {
		return "no class has devices on a node", nil
	}
	spec := &resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name: "devices", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class.Name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(most)},
	}}}}
	state := &simulate.State{Snap: p.snap, Alloc: p.alloc}
	shape, snap := fit.OfClaims(p.snap, "default", "copy", spec)
	if state, err = state.After(ctx, snap); err != nil {
		return "", err
	}
	found, err := fit.Count(ctx, state, shape, 1)
	if err != nil {
		return "", err
	}
	if found.Verdict == api.Undetermined {
		return "not known on how many nodes large claims fit: " + found.Summary, nil
	}
	fits := 0
	for i := range found.Nodes {
		if found.Nodes[i].Now > 0 {
			fits += found.Nodes[i].Count
		}
	}
	some := 0
	nodes := p.inventory.Nodes()
	for i := range nodes {
		if c := &nodes[i].Devices; c.Free > 0 && c.Free < c.Total {
			some++
		}
	}
	return fmt.Sprintf("%d of %s fit on %s; partly free: %s", most, class.Name, countNodes(fits), countNodes(some)), nil
}

func countNodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return english.Thousands(n) + " nodes"
}
