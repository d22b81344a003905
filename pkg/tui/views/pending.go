// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// waiting are pods that wait for devices or cannot work with them, have the same owner and get the
// same answer. Or it is a workload whose pods are refused, or a claim that no pod uses.
type waiting struct {
	// item is the *[inventory.Pod] that waits longest, the *[api.ObjectRef] of a workload, or an
	// *[api.Claim].
	item  any
	name  string
	count int
	asks  string
	since time.Time
	// row has the answer; nil as long as it is not known. answer is that in a few words, and reason
	// what these do not say. worst is the first of the causes; nil without any.
	row            *cause.Row
	answer, reason string
	worst          *api.Cause
}

// pendingContent is the list of what waits, the longest first.
type pendingContent struct {
	widget.ListOf[waiting]
}

// Item returns the pod, the workload or the claim.
func (c *pendingContent) Item(row int) any { return c.Items[row].item }

// newPending returns what waits, with the answers as far as they are known.
func newPending(p *live.Picture, known *live.Causes) widget.Content {
	now := p.Cluster.Snapshot.Now()
	return &pendingContent{widget.ListOf[waiting]{
		Items: append(whatWaits(p.Cluster, p.Inventory, known, ""), unusedClaims(p, known)...), ID: func(w *waiting) string { return w.name }, Pins: 2,
		Cols: []render.Column[waiting]{
			{
				Name: "Wait", Sort: func(w *waiting) (float64, bool) { return now.Sub(w.since).Seconds(), !w.since.IsZero() },
				Cell: func(w *waiting) string { return cmp.Or(w.wait(now), "-") },
			},
			{Name: "Pod", Cell: func(w *waiting) string { return w.name }},
			// Behind the name it would be cut with it.
			{Name: "Pods", Sort: func(w *waiting) (float64, bool) { return float64(w.count), w.count > 0 }, Cell: func(w *waiting) string {
				if w.count == 0 {
					return "-"
				}
				return strconv.Itoa(w.count)
			}},
			{Name: "Answer", Cell: func(w *waiting) string { return cmp.Or(w.answer, "…") }},
			{Name: "Asks", Cell: func(w *waiting) string { return w.asks }},
			{Name: "Stage", Cell: func(w *waiting) string {
				if w.row == nil {
					return ""
				}
				return render.Words(w.row.Stage)
			}},
			{Name: "Reason", Cell: func(w *waiting) string { return w.reason }},
		},
		State: (*waiting).tone, StateColumn: "Answer", Say: func(w *waiting) string { return cmp.Or(w.step(), w.summary()) },
	}}
}

// PodsIn counts the pods of rows of what waits; 0 for another view.
func PodsIn(c widget.Content, rows []int) int {
	pods := 0
	if list, ok := c.(*pendingContent); ok {
		for _, row := range rows {
			pods += list.Items[row].count
		}
	}
	return pods
}

// wait returns how long the first pod has been waiting; empty if that is not known.
func (w *waiting) wait(now time.Time) string {
	if w.since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(w.since), 0))
}

// summary says why it waits: of a pod that fits, that is not where it fits.
func (w *waiting) summary() string {
	switch {
	case w.row == nil:
		return ""
	case w.worst != nil && w.row.Verdict == api.Fits:
		return w.worst.Message + "."
	}
	return w.row.Summary
}

func (w *waiting) tone() widget.Tone {
	if _, claim := w.item.(*api.Claim); claim {
		return widget.Faint
	}
	if w.row == nil {
		return widget.Warning
	}
	switch w.row.Verdict {
	case api.Fits:
		if w.worst != nil {
			return tones(w.worst.Severity)
		}
		return widget.Good
	case api.Blocked, api.Error:
		return widget.Bad
	default:
		return widget.Warning
	}
}

// whatWaits lists the pods of a namespace, or of all, that do not run, and workloads whose pods are
// refused, the longest first. Pods that have waited since the answers were found have none.
func whatWaits(c *cluster.Cluster, inv *inventory.Inventory, known *live.Causes, namespace string) []waiting {
	var list []waiting
	names := ShortClassNames(c.Snapshot.Classes)
	at := map[any]int{}
	add := func(pod *corev1.Pod, row *cause.Row) {
		w := waiting{item: &inventory.Pod{Pod: pod}, name: pod.Namespace + "/" + pod.Name, count: 1, asks: AsksText(inv.Asks(pod), names), since: pod.CreationTimestamp.Time, row: row}
		owner := whatif.Owner(pod)
		var key any = row
		if row == nil {
			key = cmp.Or(owner, api.RefTo(api.KindPod, pod))
		} else {
			w.answer, w.reason, w.worst = render.AnswerWords(row, known.Status.Causes), reasonOf(row, known), worstOf(row, known)
		}
		i, grouped := at[key]
		if !grouped {
			at[key] = len(list)
			list = append(list, w)
			return
		}
		group := &list[i]
		group.count++
		if w.since.Before(group.since) {
			group.item, group.since = w.item, w.since
		}
		if owner.Kind != "" {
			group.name = pod.Namespace + "/" + owner.Argument()
		}
	}
	for _, pod := range c.Waiting() {
		if namespace == "" || pod.Namespace == namespace {
			add(pod, known.RowOf(api.RefTo(api.KindPod, pod)))
		}
	}
	if known != nil {
		for _, row := range known.Rows {
			of := row.First.Target
			switch {
			case of.Kind == api.KindClaim:
			case of.Kind != api.KindPod:
				w := waiting{item: &of, name: of.Namespace + "/" + of.Argument(), row: row, answer: render.AnswerWords(row, known.Status.Causes), reason: reasonOf(row, known)}
				if row.AgeSeconds > 0 {
					w.since = known.At.Add(-time.Duration(row.AgeSeconds) * time.Second)
				}
				list = append(list, w)
			default:
				for _, name := range row.Names {
					if pod := c.Snapshot.Pod(row.Namespace, name); pod != nil && !snapshot.Waits(pod) && row.Verdict == api.Blocked {
						add(pod, row)
					}
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(unknown(a.since), unknown(b.since)), a.since.Compare(b.since))
	})
	return list
}

// reasonOf returns the message of the first cause, which begins with what differs between pods, or
// the summary if there is none. Pods that fit need no reason.
func reasonOf(row *cause.Row, known *live.Causes) string {
	switch {
	case row.Verdict == api.Fits:
		return ""
	case len(row.Causes) > 0:
		return known.Status.Causes[row.Causes[0]].Message
	default:
		return row.Summary
	}
}

// unknown returns 1 for a time that is not known.
func unknown(t time.Time) int {
	if t.IsZero() {
		return 1
	}
	return 0
}

// unusedClaims lists the pending claims that no pod uses, the oldest first.
func unusedClaims(p *live.Picture, known *live.Causes) []waiting {
	var list []waiting
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
		w := waiting{item: &described, name: claim.Namespace + "/" + claim.Name, answer: "no pod uses it", since: claim.CreationTimestamp.Time}
		if w.row = known.RowOf(api.RefTo(api.KindClaim, claim)); w.row != nil {
			w.answer, w.reason = render.Words(w.row.Verdict)+", "+w.answer, reasonOf(w.row, known)
		}
		list = append(list, w)
	}
	slices.SortStableFunc(list, func(a, b waiting) int { return a.since.Compare(b.since) })
	return list
}

// Lines draw why the pod or the workload of a row waits, as far as that is known; nil for a claim without
// an answer.
func (c *pendingContent) Lines(l *widget.Look, row, width int) []string {
	w := &c.Items[row]
	if _, claim := w.item.(*api.Claim); claim && w.row == nil {
		return nil
	}
	head := strings.TrimRight(render.Escape(w.name)+"  "+render.Escape(w.asks), " ")
	return append([]string{l.Say(widget.Strong, head)}, w.lines(l, width)...)
}

func (w *waiting) lines(l *widget.Look, width int) []string {
	if w.row == nil {
		return []string{l.Say(widget.Faint, "not explained yet")}
	}
	e := w.row.First
	if w.worst != nil && e.Verdict == api.Fits {
		// Where it fits does not say why it waits.
		with := *e
		with.Summary = w.worst.Message + ". " + e.Summary
		e = &with
	}
	return widget.BriefLines(l, e, width)
}

// step returns what somebody can do first; empty if nothing is known.
func (w *waiting) step() string {
	if w.row == nil {
		return ""
	}
	steps := widget.Steps(w.row.First)
	if len(steps) == 0 {
		return ""
	}
	if first := &steps[0]; !strings.HasPrefix(first.Text, first.Who+" ") {
		return first.Who + ": " + first.Text
	}
	// It begins with "wait" itself.
	return steps[0].Text
}

// AsksText returns "8 gpu, 1 nic".
func AsksText(asks []api.Ask, names map[string]string) string {
	var classes []string
	counts := map[string]int64{}
	for _, ask := range asks {
		of := make([]string, 0, len(ask.Classes))
		for _, class := range ask.Classes {
			of = append(of, cmp.Or(names[class], class))
		}
		class := strings.Join(slices.Compact(of), " or ")
		if !slices.Contains(classes, class) {
			classes = append(classes, class)
		}
		if ask.Count == 0 || counts[class] < 0 {
			counts[class] = -1
			continue
		}
		counts[class] += ask.Count
	}
	parts := make([]string, 0, len(classes))
	for _, class := range classes {
		if counts[class] < 0 {
			parts = append(parts, "all "+class)
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", counts[class], class))
	}
	return strings.Join(parts, ", ")
}

// ShortClassNames cuts names of classes at the first dot, where they still differ then.
func ShortClassNames(classes []*resourceapi.DeviceClass) map[string]string {
	count := map[string]int{}
	short := func(name string) string {
		before, _, _ := strings.Cut(name, ".")
		return before
	}
	for i := range classes {
		count[short(classes[i].Name)]++
	}
	names := map[string]string{}
	for i := range classes {
		if name := classes[i].Name; count[short(name)] == 1 {
			names[name] = short(name)
		}
	}
	return names
}
