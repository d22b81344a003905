// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// waiting are pods that wait for devices and are equal: they have the same owner, ask for
// the same and wait for the same reason. Or it is a claim that no pod uses.
type waiting struct {
	// pod is the pod that waits longest; nil for a claim.
	pod   *corev1.Pod
	claim *api.Claim
	// of identifies the reason.
	of    api.ObjectRef
	name  string
	count int
	asks  string
	since time.Time
	found live.Reason
}

// pendingContent is the list of what waits, the longest first. What a row is about is a
// pod or a claim.
type pendingContent struct {
	widget.ListOf[waiting]
}

func (c *pendingContent) Item(row int) any {
	if w := &c.Items[row]; w.pod == nil {
		return w.claim
	}
	return &inventory.Pod{Pod: c.Items[row].pod}
}

// newPending returns the reasons that were found so far.
func newPending(p *live.Picture, known *live.Reasons) widget.Content {
	now := p.Cluster.Snapshot.Now()
	list := &pendingContent{widget.ListOf[waiting]{
		Items: whatWaits(p, known), ID: func(w *waiting) string { return w.name }, Pins: 2,
		Cols: []render.Column[waiting]{
			{
				Name: "Wait", Sort: func(w *waiting) (float64, bool) { return now.Sub(w.since).Seconds(), !w.since.IsZero() },
				Cell: func(w *waiting) string {
					if w.since.IsZero() {
						return "-"
					}
					return duration.HumanDuration(max(now.Sub(w.since), 0))
				},
			},
			{Name: "Pod", Cell: func(w *waiting) string { return w.name }},
			// Behind the name it would be cut with it.
			{Name: "Pods", Sort: func(w *waiting) (float64, bool) { return float64(w.count), w.count > 0 }, Cell: func(w *waiting) string {
				if w.count == 0 {
					return "-"
				}
				return strconv.Itoa(w.count)
			}},
			{Name: "Asks", Cell: func(w *waiting) string { return w.asks }},
			{Name: "Why", Cell: func(w *waiting) string { return w.told(w.found.Word()) }},
			{Name: "Outlook", Cell: func(w *waiting) string { return string(w.found.Outlook) }},
			{Name: "Stage", Cell: func(w *waiting) string { return string(w.found.Stage) }},
			{Name: "Reason", Cell: func(w *waiting) string { return w.told(w.found.Summary) }},
		},
		State: waitingTone, StateColumn: "Why", Say: func(w *waiting) string { return w.found.Summary },
	}}
	return list
}

// told returns a text about the reason, or that it is not known yet.
func (w *waiting) told(text string) string {
	if w.found.Summary == "" && w.found.Answer == nil {
		return "…"
	}
	return text
}

func waitingTone(w *waiting) widget.Tone {
	switch {
	case w.pod == nil:
		return widget.Faint
	case w.found.Word() == string(api.Fits):
		return widget.Good
	default:
		return widget.Warning
	}
}

// whatWaits lists the pods that wait for devices, equal ones together, and then the
// claims that no pod uses, each the longest first.
func whatWaits(p *live.Picture, reasons *live.Reasons) []waiting {
	var list []waiting
	known := map[string]int{}
	names := ShortClassNames(p.Cluster.Snapshot.Classes)
	for _, pod := range p.Cluster.Waiting() {
		of, _ := p.WaitsFor(pod)
		w := waiting{pod: pod, of: of, name: pod.Namespace + "/" + pod.Name, count: 1, asks: AsksText(p.Inventory.Asks(pod), names), since: pod.CreationTimestamp.Time, found: reasons.Get(of)}
		owner := whatif.Owner(pod)
		if owner.Kind == "" {
			list = append(list, w)
			continue
		}
		key := strings.Join([]string{owner.String(), w.asks, w.found.Word(), string(w.found.Outlook)}, "\x00")
		at, grouped := known[key]
		if !grouped {
			known[key] = len(list)
			list = append(list, w)
			continue
		}
		group := &list[at]
		group.count++
		group.name = pod.Namespace + "/" + owner.Argument()
		if w.since.Before(group.since) {
			group.pod, group.since, group.of, group.found = w.pod, w.since, w.of, w.found
		}
	}
	slices.SortStableFunc(list, func(a, b waiting) int { return a.since.Compare(b.since) })
	unused := len(list)
	var claims []api.Claim
	for i, claim := range p.Cluster.Snapshot.Claims {
		if !p.Inventory.WaitsForPod(claim) {
			continue
		}
		if claims == nil {
			claims = p.Inventory.Claims()
		}
		// The others are not kept.
		described := claims[i]
		of := api.RefTo(api.KindClaim, claim)
		list = append(list, waiting{
			claim: &described, of: of, name: claim.Namespace + "/" + claim.Name, asks: "no pod uses it",
			since: claim.CreationTimestamp.Time, found: reasons.Get(of),
		})
	}
	slices.SortStableFunc(list[unused:], func(a, b waiting) int { return a.since.Compare(b.since) })
	return list
}

// Answer returns why the pod or the claim of a row waits; nil if that is not known.
func (c *pendingContent) Answer(row int) *api.Explanation { return c.Items[row].found.Answer }

// Lines draw why the pod or the claim of a row waits, as far as that is known.
func (c *pendingContent) Lines(l *widget.Look, row, width int) []string {
	w := &c.Items[row]
	lines := []string{l.Say(widget.Strong, render.Escape(w.name))}
	if w.asks != "" {
		lines = append(lines, render.Escape(w.asks))
	}
	switch answer := w.found.Answer; {
	case answer != nil:
		lines = append(append(lines, ""), widget.BriefLines(l, answer, width)...)
	case w.found.Summary != "":
		lines = append(lines, "", render.Escape(w.found.Summary))
	default:
		lines = append(lines, "", l.Say(widget.Faint, "not explained yet"))
	}
	return lines
}
