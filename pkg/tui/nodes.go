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
			switch {
			case d.Unhealthy:
				glyph = l.glyphs.unhealthy
			case d.TaintedInUse:
				glyph = l.glyphs.taintedInUse
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
	tones := map[string]tone{}
	for _, sign := range l.signs() {
		tones[sign.glyph] = sign.tone
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

// sign stands for a device.
type sign struct {
	glyph, means string
	tone         tone
}

func (l *look) signs() []sign {
	return []sign{
		{l.glyphs.free, "free", good},
		{l.glyphs.allocated, "used", busy},
		{l.glyphs.shared, "shared", busy},
		{l.glyphs.taintedInUse, "used+tainted", bad},
		{l.glyphs.blocked, "blocked", faint},
		{l.glyphs.tainted, "tainted", warning},
		{l.glyphs.unusable, "unusable", bad},
		{l.glyphs.unhealthy, "unhealthy", bad},
	}
}

// legend explains the signs, in no more than 80 columns.
func (l *look) legend() string {
	parts := make([]string, 0, len(l.signs()))
	for _, sign := range l.signs() {
		parts = append(parts, l.say(sign.tone, sign.glyph)+" "+sign.means)
	}
	return strings.Join(parts, " ")
}
