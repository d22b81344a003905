// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"strconv"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

const (
	// ShownGroups is how many groups of nodes are listed by default.
	ShownGroups = 10
	// namesWidth is how many cells the column of names takes at most from the column of
	// messages, and namesRoom the width that it needs to stand beside them.
	namesWidth = 44
	namesRoom  = 24
)

// writeNodes lists the groups of nodes with the same answer.
func writeNodes(p *Page, e *api.Explanation) {
	if len(e.Nodes) == 0 || e.Node != nil || len(e.Nodes) == 1 && e.Summary == english.Sentence(e.Nodes[0].Message) {
		return
	}
	writeNodeList(p, "Nodes", e.Nodes)
}

// writeNodeList draws groups of nodes, the first of many unless all were asked for.
func writeNodeList(p *Page, title string, all []api.NodeGroup) {
	p.Heading(title)
	shown := all
	if p.Opts.Wide {
		shown = apart(shown)
	}
	if !p.Opts.Wide && len(shown) > ShownGroups+1 {
		shown = shown[:ShownGroups]
	}
	writeNodeGroups(p, shown)
	if rest := all[min(len(shown), len(all)):]; len(rest) > 0 {
		n := 0
		for i := range rest {
			n += rest[i].Count
		}
		p.Text(2, Faint, fmt.Sprintf("and %s with %s: -o wide lists them", english.Count(len(rest), "more group"), english.Count(n, "node")))
	}
}

// apart returns the parts of a group in its place.
func apart(groups []api.NodeGroup) []api.NodeGroup {
	var all []api.NodeGroup
	for i := range groups {
		if len(groups[i].Parts) > 0 {
			all = append(all, groups[i].Parts...)
		} else {
			all = append(all, groups[i])
		}
	}
	return all
}

// writeNodeGroups draws the groups, the names beside the messages if there is room
// for them, else below.
func writeNodeGroups(p *Page, groups []api.NodeGroup) {
	numbers, messages := make([]string, len(groups)), make([]string, len(groups))
	for i := range groups {
		numbers[i] = strconv.Itoa(groups[i].Count)
		messages[i], _ = groupText(&groups[i])
	}
	number := max(Widest(12, numbers...), 3)
	margin := 2 + number + ColumnGap
	names, message, beside := NameColumn(p, margin, groups, messages)
	for i := range groups {
		said, m := groupText(&groups[i])
		cells := []Cell{
			{Text: numbers[i], Width: number, Right: true, Mark: m},
			{Text: said},
		}
		switch {
		case beside:
			cells[1].Width = message
			p.TableRow(2, append(cells, Cell{Text: names[i], Whole: true, Mark: Faint})...)
		case p.Opts.Wide:
			p.TableRow(2, cells...)
			p.List(margin+2, Faint, groups[i].Names)
		default:
			p.TableRow(2, cells...)
			p.Text(margin+2, Faint, p.Some(groups[i].Names, groups[i].Count, p.Table-margin-2))
		}
	}
}

// NameColumn writes the names of each group to stand beside the messages. It
// returns the width for these too, or false if there is no room for the names.
func NameColumn(p *Page, margin int, groups []api.NodeGroup, messages []string) (names []string, message int, beside bool) {
	names = make([]string, len(groups))
	if p.Table == Unlimited {
		for i := range groups {
			names[i] = p.Some(groups[i].Names, groups[i].Count, namesLongest)
		}
		return names, Widest(AlignWidth, messages...), true
	}
	room := p.Table - margin - ColumnGap
	message = Widest(room, messages...)
	width := max(room-message, min(namesWidth, max(room/3, namesRoom), room-messageWidth))
	if width < namesRoom {
		return nil, 0, false
	}
	for i := range groups {
		names[i] = p.Some(groups[i].Names, groups[i].Count, width)
	}
	if Widest(room, names...) > width {
		return nil, 0, false
	}
	return names, min(message, room-Widest(room, names...)), true
}

func groupText(g *api.NodeGroup) (string, Mark) {
	switch g.Verdict {
	case api.Fits, api.Allocated:
		said := "fits"
		if g.Score != 0 {
			said += fmt.Sprintf(" (score %d)", g.Score)
		}
		switch {
		case g.Message == "":
		case g.Verdict == api.Allocated:
			said = g.Message
		default:
			said += ": " + g.Message
		}
		return said, Good
	case api.Undetermined:
		return cmp.Or(g.Message, "undetermined"), Unsure
	case api.DoesNotFit, api.Blocked, api.Error:
		return cmp.Or(g.Message, string(g.Code)), Bad
	default:
		return cmp.Or(g.Message, string(g.Verdict)), Unsure
	}
}
