// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"strconv"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writeNodes lists the groups of nodes with the same answer.
func writeNodes(p *page, e *api.Explanation) {
	if len(e.Nodes) == 0 || e.Node != nil || len(e.Nodes) == 1 && e.Summary == english.Sentence(e.Nodes[0].Message) {
		return
	}
	writeNodeList(p, "Nodes", e.Nodes)
}

// writeNodeList draws groups of nodes, the first of many unless all were asked for.
func writeNodeList(p *page, title string, all []api.NodeGroup) {
	p.Heading(title)
	shown := all
	if p.Opts.Wide {
		shown = apart(shown)
	}
	if !p.Opts.Wide && len(shown) > render.ShownGroups+1 {
		shown = shown[:render.ShownGroups]
	}
	writeNodeGroups(p, shown)
	if rest := all[min(len(shown), len(all)):]; len(rest) > 0 {
		n := 0
		for i := range rest {
			n += rest[i].Count
		}
		p.Text(2, render.Faint, fmt.Sprintf("and %s with %s: -o wide lists them", english.Count(len(rest), "more group"), english.Count(n, "node")))
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
func writeNodeGroups(p *page, groups []api.NodeGroup) {
	numbers, messages := make([]string, len(groups)), make([]string, len(groups))
	for i := range groups {
		numbers[i] = strconv.Itoa(groups[i].Count)
		messages[i], _ = groupText(&groups[i])
	}
	number := max(render.Widest(12, numbers...), 3)
	margin := 2 + number + render.ColumnGap
	names, message, beside := p.NameColumn(margin, groups, messages)
	for i := range groups {
		said, m := groupText(&groups[i])
		cells := []render.Cell{
			{Text: numbers[i], Width: number, Right: true, Mark: m},
			{Text: said},
		}
		switch {
		case beside:
			cells[1].Width = message
			p.TableRow(2, append(cells, render.Cell{Text: names[i], Whole: true, Mark: render.Faint})...)
		case p.Opts.Wide:
			p.TableRow(2, cells...)
			p.List(margin+2, render.Faint, groups[i].Names)
		default:
			p.TableRow(2, cells...)
			p.Text(margin+2, render.Faint, p.Some(groups[i].Names, groups[i].Count, p.Table-margin-2))
		}
	}
}

func groupText(g *api.NodeGroup) (string, render.Mark) {
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
		return said, render.Good
	case api.Undetermined:
		return cmp.Or(g.Message, "undetermined"), render.Unsure
	case api.DoesNotFit, api.Blocked, api.Error:
		return cmp.Or(g.Message, string(g.Code)), render.Bad
	default:
		return cmp.Or(g.Message, string(g.Verdict)), render.Unsure
	}
}

// writeMisfits lists what keeps the pod away from the one node.
func writeMisfits(p *page, e *api.Explanation) {
	if e.Node == nil || len(e.Node.Misfits) == 0 {
		return
	}
	p.Heading("Node " + e.Node.Name + " is not suitable for the pod")
	for i := range e.Node.Misfits {
		misfit := &e.Node.Misfits[i]
		p.Items(misfit.Message)
		if p.Opts.Wide {
			writeEvidence(p, 5, []api.Evidence{misfit.Evidence})
		}
	}
}

// writePools lists the pools that the one node can reach, with their state.
func writePools(p *page, e *api.Explanation) {
	if e.Node == nil || e.Node.Pools == nil {
		return
	}
	p.Heading("Pools reachable from " + e.Node.Name)
	rows := make([][]render.Cell, 0, len(e.Node.Pools))
	for i := range e.Node.Pools {
		pool := &e.Node.Pools[i]
		state, m := "usable", render.Good
		switch {
		case !pool.Usable:
			state, m = "not used: "+pool.Message, render.Bad
		case pool.Code != "":
			state, m = "partly used: "+pool.Message, render.Unsure
		}
		rows = append(rows, []render.Cell{{Text: pool.Driver + "/" + pool.Name}, {Text: english.Count(pool.Devices, "device")}, {Text: state, Mark: m}})
	}
	render.Align(rows, render.NamesWidth, 12)
	for i, row := range rows {
		p.Row(2, row...)
		if evidence := e.Node.Pools[i].Evidence; p.Opts.Wide && evidence != nil {
			writeEvidence(p, 4, []api.Evidence{*evidence})
		}
	}
}
