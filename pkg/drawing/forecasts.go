// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"fmt"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// room is a row of bars: how many copies fit now, how many once all claims are released, and of what.
type room struct {
	now, released int
	text          string
}

// Fit draws how many copies each group of nodes takes now, and how many once all claims are
// released.
func Fit(f *api.Fit) *Drawing {
	var rows []room
	for i := range f.Nodes {
		g := &f.Nodes[i]
		text := english.Sample(g.Names, 1)
		switch {
		case g.Count > 1:
			text = fmt.Sprintf("%s: %d each", english.Sample(g.Names, 2), g.Now)
		case g.Message != "":
			text += ": " + g.Message
		}
		rows = append(rows, room{g.Count * g.Now, g.Count * g.Released, text})
	}
	return rooms(f.Summary, rows)
}

// FitShapes draws how many more claims of each shape fit.
func FitShapes(f *api.FitShapes) *Drawing {
	var rows []room
	for i := range f.Shapes {
		s := &f.Shapes[i]
		rows = append(rows, room{s.Now.AtLeast, s.Released.AtLeast, s.Shape.Class + ": " + render.ShapeText(&s.Shape)})
	}
	return rooms("How many more claims fit, each for a pod that needs nothing else", rows)
}

// rooms draws bars for what fits now, within bars for what fits once all claims are released.
func rooms(title string, rows []room) *Drawing {
	d := newDrawing(title)
	d.heading(title)
	most := 1
	for _, r := range rows {
		most = max(most, r.now, r.released)
	}
	scale := barWidth / float64(most)
	for _, r := range rows[:min(len(rows), mostRows)] {
		if r.released != r.now {
			r.text += fmt.Sprintf("; %d once claims are released", r.released)
		}
		d.text(countEdge, d.height, "plain", "end", strconv.Itoa(r.now))
		d.rect(barLeft, d.height+2, shown(r.released, scale), line-6, "track")
		d.rect(barLeft, d.height+2, shown(r.now, scale), line-6, "good fill")
		d.height += float64(d.paragraph(sayLeft, d.height, "plain", r.text)) * line
		d.say("%d: %s", r.now, r.text)
	}
	if more := len(rows) - mostRows; more > 0 {
		d.text(0, d.height, "faint", "", fmt.Sprintf("… %s more", english.Thousands(more)))
		d.height += line
	}
	return d
}

// Plan draws the queue in its order, and the node that each pod gets. Pods of one workload with the
// same outcome are one row.
func Plan(p *api.Plan) *Drawing {
	var rows []move
	var last *api.PlannedPod
	for i := range p.Pods {
		pod := &p.Pods[i]
		if last != nil && pod.Owner.Kind != "" && pod.Owner == last.Owner && pod.Namespace == last.Namespace && pod.Outcome == last.Outcome && pod.Node == last.Node && pod.Reason == last.Reason {
			rows[len(rows)-1].count++
			continue
		}
		last = pod
		name := pod.Namespace + "/" + pod.Name
		if pod.Position > 0 {
			name = strconv.Itoa(pod.Position) + ". " + name
		}
		why := pod.Reason
		if outcome := render.Words(pod.Outcome); !strings.HasPrefix(strings.ToLower(why), outcome) {
			why = strings.TrimSuffix(outcome+": "+why, ": ")
		}
		rows = append(rows, move{from: name, to: pod.Node, why: why, mark: render.OutcomeMark(pod.Outcome), count: 1})
	}
	return moves(render.PlanTotal(p), counted(rows))
}

// counted says at the end of rows how many pods they stand for.
func counted(rows []move) []move {
	for i := range rows {
		if n := rows[i].count; n > 1 {
			rows[i].from += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return rows
}

// Impact draws the pods that a change concerns, and where they go.
func Impact(i *api.Impact) *Drawing {
	title, _ := render.ImpactTitle(i)
	var rows []move
	for j := range i.Pods {
		pod := &i.Pods[j]
		if pod.Effect == api.EffectStays || pod.Effect == api.EffectRemoved {
			continue
		}
		r := move{from: pod.Namespace + "/" + pod.Name, mark: render.Bad, why: render.Words(pod.Outcome), count: 1}
		if pod.Node != "" {
			r.from += " on " + pod.Node
		}
		if pod.Outcome == api.OutcomeNotRecreated && pod.Placement == nil {
			r.why = "nothing creates it again, and one like it fits nowhere"
		}
		if pod.Reason != "" {
			r.why += ": " + pod.Reason
		}
		switch {
		case pod.Effect == api.EffectDevicesLost || pod.Effect == api.EffectFitLost:
			r.why = english.Sentence(render.Words(pod.Effect) + ". " + r.why)
		case pod.Placement != nil:
			r.to, r.mark = pod.Placement.Node, render.Good
			if pod.Outcome == api.OutcomeNotRecreated {
				r.to, r.why, r.mark = "", "nothing creates it again; one like it would fit on "+pod.Placement.Node, render.Unsure
			}
		}
		rows = append(rows, r)
	}
	return moves(title, rows)
}

// mostRows is how many rows a drawing has; the others are counted.
const mostRows = 60

// move is a row of a drawing: something on the left, and where it goes or why it does not.
type move struct {
	from, to, why string
	mark          render.Mark
	// count is how many pods the row stands for.
	count int
}

// moves draws rows on the left, the places on the right, and an arrow from each row to its place.
func moves(title string, rows []move) *Drawing {
	const left, gap, row = 330.0, 90.0, line + 8.0
	d := newDrawing(title)
	d.heading(title)
	top := d.height
	places, order := map[string]float64{}, []string{}
	for i := range rows[:min(len(rows), mostRows)] {
		r := &rows[i]
		y := d.height
		d.rect(0.5, y+0.5, left-1, row-5, "box")
		d.text(6, y+2, "plain", "", cut(r.from, left-12))
		height := row
		switch {
		case r.to != "":
			if _, known := places[r.to]; !known {
				places[r.to] = max(y, top+float64(len(order))*row)
				order = append(order, r.to)
			}
			d.arrow(left, y+row/2-2, left+gap, places[r.to]+row/2-2, "move "+class(r.mark))
			d.say("%s goes to %s", r.from, r.to)
		default:
			lines := d.paragraph(left+14, y+2, class(r.mark), r.why)
			height = max(row, float64(lines)*line+8)
			d.say("%s: %s", r.from, r.why)
		}
		d.height += height
	}
	for _, place := range order {
		y := places[place]
		d.rect(left+gap+0.5, y+0.5, width-left-gap-1, row-5, "box")
		d.text(left+gap+6, y+2, "plain", "", cut(place, width-left-gap-12))
		d.height = max(d.height, y+row)
	}
	if more := len(rows) - mostRows; more > 0 {
		d.text(0, d.height, "faint", "", fmt.Sprintf("… %s more", english.Thousands(more)))
		d.height += line
	}
	return d
}
