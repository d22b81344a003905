// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// nodeContent is the map: each node with a strip of its devices.
type nodeContent struct {
	listOf[inventory.Node]
	glyphs glyphs
}

const stripTitle = "Devices"

func newNodes(p *picture, l *look) content {
	s := &nodeContent{glyphs: l.glyphs}
	s.listOf = listOf[inventory.Node]{
		items: p.inventory.Nodes(),
		cols: append(render.NodeColumns(), render.Column[inventory.Node]{
			Name: stripTitle, Cell: func(n *inventory.Node) string { return strip(l, n) },
		}),
		id:    func(n *inventory.Node) string { return n.Scope },
		state: nodeTone, stateColumn: "State",
	}
	return s
}

func nodeTone(n *inventory.Node) tone {
	switch n.State {
	case "Ready":
		return good
	case "NotReady", "Gone":
		return bad
	default:
		return plain
	}
}

// strip has a sign for each device of a node. Those that are plugged in at the
// same place stand together; a line is between drivers.
func strip(l *look, n *inventory.Node) string {
	var text strings.Builder
	for i := range n.Groups {
		group := &n.Groups[i]
		switch {
		case i == 0:
		case group.Driver != n.Groups[i-1].Driver:
			text.WriteString(" " + l.glyphs.between + " ")
		default:
			text.WriteByte(' ')
		}
		for _, d := range group.Devices {
			glyph, _ := l.ofState(d.State)
			if d.Unhealthy {
				glyph = l.glyphs.unhealthy
			}
			text.WriteString(glyph)
		}
	}
	return text.String()
}

func (s *nodeContent) paint(l *look, row, column int, text string) string {
	if s.cols[column].Name != stripTitle {
		return s.listOf.paint(l, row, column, text)
	}
	return l.paintStrip(text)
}

// paintStrip colours the signs of devices.
func (l *look) paintStrip(text string) string {
	tones := map[string]tone{l.glyphs.unhealthy: bad}
	for _, state := range inventory.DeviceStates() {
		glyph, t := l.ofState(state)
		tones[glyph] = t
	}
	var painted, run strings.Builder
	last := plain
	flush := func() {
		painted.WriteString(l.say(last, run.String()))
		run.Reset()
	}
	for _, r := range text {
		if t := tones[string(r)]; t != last {
			flush()
			last = t
		}
		run.WriteRune(r)
	}
	flush()
	return painted.String()
}

// legend explains the signs.
func (l *look) legend() string {
	var parts []string
	for _, state := range inventory.DeviceStates() {
		glyph, t := l.ofState(state)
		parts = append(parts, l.say(t, glyph)+" "+strings.ToLower(string(state)))
	}
	parts = append(parts, l.say(bad, l.glyphs.unhealthy)+" unhealthy")
	return strings.Join(parts, "  ")
}
