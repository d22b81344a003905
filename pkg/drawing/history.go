// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// History draws how an answer changed: a bar of time, colored by the verdict, and below it the
// events with their times in UTC.
func History(h *api.History) *Drawing {
	said, mark, events := render.HistoryLines(h, time.UTC)
	return drawn(said, func(d *Drawing) { d.history(h, said, mark, events) })
}

func (d *Drawing) history(h *api.History, said string, mark render.Mark, events []render.HistoryLine) {
	d.height += float64(d.paragraph(0, 0, class(mark)+" strong", said))*line + 4
	span := max(h.To.Sub(h.From.Time), time.Second)
	at := func(t metav1.Time) float64 {
		return min(max(float64(t.Sub(h.From.Time))/float64(span), 0), 1) * d.width
	}
	d.rect(0, d.height, d.width, line-4, "track")
	for i := range h.Entries {
		answer := h.Entries[i].Answer
		if answer == nil {
			continue
		}
		from, to := at(h.Entries[i].Time), d.width
		for j := i + 1; j < len(h.Entries); j++ {
			if next := &h.Entries[j]; next.Answer != nil || next.Event == api.HistoryDeleted {
				to = at(next.Time)
				break
			}
		}
		d.rect(from, d.height, to-from, line-4, class(render.VerdictMark(answer.Verdict))+" fill")
	}
	d.height += line
	d.text(0, d.height, "faint", "", h.From.UTC().Format("2006-01-02 15:04"))
	d.text(d.width, d.height, "faint", "end", h.To.UTC().Format("2006-01-02 15:04 MST"))
	d.height += line + 4
	for _, e := range events {
		d.text(0, d.height, "faint", "", e.Time)
		x := 120.0
		if d.width < width {
			x = 20
			d.height += line
		}
		d.height += float64(d.paragraph(x, d.height, "plain", e.Text)) * line
		d.say("%s %s", e.Time, e.Text)
	}
}
