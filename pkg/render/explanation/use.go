// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// shownRequests is how many requests are shown of those whose class does not select
// the device.
const shownRequests = 3

// Use draws the answer to "why" about a device or a node. The only errors are those
// of w.
func Use(w io.Writer, e *api.UseExplanation, opts render.Options) error {
	p := newPage(opts)
	if e.Node == nil {
		writeDeviceUse(p, e)
	} else {
		writeNodeUse(p, e)
	}
	p.Assumptions(e.Assumptions)
	writeAllocator(p, &api.Explanation{Allocator: e.Allocator})
	return p.Print(w)
}

func writeDeviceUse(p *page, e *api.UseExplanation) {
	d := &e.Devices[0]
	text, m := useText(d.State)
	p.Text(0, m, "Device "+e.Target.Name+" "+text)
	p.Blank()
	p.Field("Reason", english.Capitalized(d.Summary)+".")
	p.Field("Usable on", d.Nodes)
	var holders []string
	for i := range d.Holders {
		holders = append(holders, holderText(&d.Holders[i]))
	}
	p.Field("Used by", holders...)
	classes := strings.Join(d.Classes, ", ")
	if classes == "" {
		classes = "no DeviceClass selects it"
	}
	p.Field("Classes", classes)
	p.Field("Binding", strings.Join(d.BindingConditions, ", "))
	if d.State == api.DeviceInUse && len(d.Requests) == 0 {
		for i := range d.Blocks {
			if d.Blocks[i].Code == api.DeviceTainted {
				p.Field("Tainted", d.Blocks[i].Message)
			}
		}
		return
	}
	p.Field("Waiting", waitingText(e.WaitingPods), notExplainedText(e.NotExplained))
	if d.State != api.DeviceBlocked || p.Opts.Wide {
		writeBlocks(p, d.Blocks)
	}
	writeWaiting(p, d)
}

func waitingText(pods int) string {
	if pods == 0 {
		return "no pod waits for devices"
	}
	return english.Count(pods, "pod") + " in all namespaces"
}

// notExplainedText says what of that which waits is only counted.
func notExplainedText(n *api.NotExplained) string {
	if n == nil {
		return ""
	}
	var parts []string
	if n.Kinds > 0 {
		text := fmt.Sprintf("%s of %s", english.Count(n.Pods, "pod"), english.Count(n.Kinds, "kind"))
		if n.SelectingKinds > 0 {
			text += fmt.Sprintf(", %d with a class that selects devices here", n.SelectingKinds)
		}
		parts = append(parts, text)
	}
	if n.Claims > 0 {
		parts = append(parts, english.Count(n.Claims, "claim")+" without a pod")
	}
	return "not explained, because there are too many: " + english.JoinAnd(parts)
}

// useText says what becomes of a device.
func useText(s api.DeviceUseState) (string, render.Mark) {
	switch s {
	case api.DeviceInUse:
		return "is in use", render.Good
	case api.DeviceNext:
		return "is idle, and the next pod gets it", render.Good
	case api.DeviceBlocked:
		return "is idle and blocked", render.Bad
	case api.DeviceRequested:
		return "is idle while pods wait for devices of its class", render.Bad
	case api.DeviceNotRequested:
		return "is idle: nobody asks for it", render.Unsure
	default:
		return "may be in use or idle: that is not known", render.Unsure
	}
}

func writeBlocks(p *page, blocks []api.DeviceCheck) {
	if len(blocks) == 0 {
		return
	}
	p.Heading("Blocked for requests that do not tolerate it")
	width := render.Widest(labelWidth, english.Texts(blocks, func(c api.DeviceCheck) string { return c.Label })...)
	for i := range blocks {
		p.Row(2, render.Cell{Text: blocks[i].Label, Width: width, Mark: render.Bad}, render.Cell{Text: blocks[i].Message})
		if p.Opts.Wide {
			writeEvidence(p, 2+width+render.ColumnGap, blocks[i].Evidence)
		}
	}
}

// writeWaiting draws the requests in the order of the queue. Those whose class does
// not select the device are shown if there are no others, or with -o wide.
func writeWaiting(p *page, d *api.DeviceUse) {
	var shown []*api.RequestUse
	others := 0
	for i := range d.Requests {
		if r := &d.Requests[i]; p.Opts.Wide || r.Code != api.ClassSelectorFalse {
			shown = append(shown, r)
		} else {
			others++
		}
	}
	title := "Waiting requests, in the order of the queue"
	if len(shown) == 0 {
		title = "Waiting requests, all for devices of other classes"
		for i := range d.Requests[:min(len(d.Requests), shownRequests)] {
			shown = append(shown, &d.Requests[i])
		}
		others = len(d.Requests) - len(shown)
	}
	if len(shown) == 0 {
		return
	}
	p.Heading(title)
	for i, r := range shown {
		outcome, m := outcomeText(r.Outcome, false), render.Bad
		if r.Outcome != api.Rejected {
			m = render.Unsure
		}
		if r.Outcome == api.Picked {
			outcome, m = "next", render.Good
		}
		p.Row(2, render.Cell{Text: strconv.Itoa(i + 1), Width: len(strconv.Itoa(len(shown))), Right: true}, render.Cell{Text: waiterText(r) + ": " + outcome, Mark: m})
		writeFailed(p, r)
	}
	if others > 0 {
		p.Text(2, render.Faint, fmt.Sprintf("and %s for devices of other classes (-o wide)", english.Count(others, "request")))
	}
}

// writeFailed says why a request does not get the device.
func writeFailed(p *page, r *api.RequestUse) {
	if len(r.Failed) == 0 {
		p.Text(5, render.Plain, r.Message)
		return
	}
	width := render.Widest(labelWidth, english.Texts(r.Failed, func(c api.DeviceCheck) string { return c.Label })...)
	for i := range r.Failed {
		said, m := checkText(api.CheckFailed, i > 0)
		p.Row(5, render.Cell{Text: said, Width: len("also fails"), Mark: m}, render.Cell{Text: r.Failed[i].Label, Width: width}, render.Cell{Text: r.Failed[i].Message})
		if p.Opts.Wide {
			writeEvidence(p, 7+len("also fails"), r.Failed[i].Evidence)
		}
	}
}

// waiterText names a request and who waits with it.
func waiterText(r *api.RequestUse) string {
	title := cluster.RequestTitle(r.Name, r.Container, r.ExtendedResource)
	if r.Pod.Kind == "" {
		return fmt.Sprintf("claim %s, used by no pod, %s of class %s", requestClaim(r.Claim, r.PodClaim), title, r.DeviceClass)
	}
	pod := "pod " + render.Qualified(r.Pod.Namespace, r.Pod.Name)
	if r.PodCount > 1 {
		pod += fmt.Sprintf(" and %d equal", r.PodCount-1)
	}
	return fmt.Sprintf("%s, %s of class %s", pod, title, r.DeviceClass)
}

func writeNodeUse(p *page, e *api.UseExplanation) {
	p.Text(0, render.Strong, "Node "+e.Target.Name+" has "+strings.TrimSuffix(e.Summary, "."))
	p.Blank()
	p.Field("Node", strings.Join(english.Texts(e.Node.Blocks, func(c api.NodeMisfit) string { return c.Message }), "; "))
	p.Field("Waiting", waitingText(e.WaitingPods), notExplainedText(e.NotExplained))
	p.Field("Unknown", e.Undetermined)
	writeUseGroups(p, e)
	writeWaitingMisfits(p, e.Node.Misfits)
	for i := range e.Devices {
		d := &e.Devices[i]
		if d.State == api.DeviceInUse || !p.Opts.Wide && !slices.ContainsFunc(d.Requests, func(r api.RequestUse) bool { return r.Code != api.ClassSelectorFalse }) {
			continue
		}
		p.Heading("Device " + d.Driver + "/" + d.Pool + "/" + strings.Join(english.Collapse(d.Names), ", "))
		writeRequestList(p, d)
	}
}

// writeRequestList draws one line for each request.
func writeRequestList(p *page, d *api.DeviceUse) {
	for i := range d.Requests {
		r := &d.Requests[i]
		if r.Code == api.ClassSelectorFalse && !p.Opts.Wide {
			continue
		}
		text := r.Message
		if len(r.Failed) > 0 {
			text = r.Failed[0].Label
			if r.Failed[0].Message != "" {
				text += ": " + r.Failed[0].Message
			}
			if more := len(r.Failed) - 1; more > 0 {
				text += fmt.Sprintf("; and %s", english.Count(more, "more check"))
			}
		}
		p.Items(waiterText(r) + ": " + text)
	}
}

// writeUseGroups draws a line for each group of devices.
func writeUseGroups(p *page, e *api.UseExplanation) {
	if len(e.Devices) == 0 {
		return
	}
	p.Heading("Devices")
	rows := make([][]render.Cell, 0, len(e.Devices))
	for i := range e.Devices {
		d := &e.Devices[i]
		_, m := useText(d.State)
		rows = append(rows, []render.Cell{
			{Text: strconv.Itoa(len(d.Names)), Right: true},
			{Text: groupState(d.State), Mark: m},
			{Text: strings.Join(english.Collapse(d.Names), ", ")},
			{Text: d.Summary},
		})
	}
	p.Rows(2, rows, labelWidth, labelWidth, labelWidth)
}

func groupState(s api.DeviceUseState) string {
	switch s {
	case api.DeviceInUse:
		return "in use"
	case api.DeviceNext:
		return "next"
	case api.DeviceBlocked:
		return "blocked"
	case api.DeviceRequested:
		return "pods wait"
	case api.DeviceNotRequested:
		return "nobody asks"
	default:
		return "not known"
	}
}

func writeWaitingMisfits(p *page, misfits []api.WaitingMisfit) {
	if len(misfits) == 0 {
		return
	}
	p.Heading("What keeps waiting pods away from the node")
	rows := make([][]render.Cell, 0, len(misfits))
	for i := range misfits {
		rows = append(rows, []render.Cell{
			{Text: strconv.Itoa(misfits[i].PodCount), Right: true},
			{Text: misfits[i].Message + " (" + english.Sample(english.Texts(misfits[i].Pods, api.ObjectRef.QualifiedName), 3) + ")"},
		})
	}
	p.Rows(2, rows, labelWidth)
}
