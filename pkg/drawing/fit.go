// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"fmt"
	"strconv"

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
