// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"io"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

const (
	// briefLines is how many lines a brief answer has at most, without the commands and
	// remedies that were asked for: it fits on a terminal of 24 lines.
	briefLines = 20
	// headLines limits the lines above the first remedy.
	headLines = 7
	// leastBelow is the number of lines that remedies leave to everything else, notesReserve the
	// number of lines that notes leave to facts and funnels.
	leastBelow   = 7
	notesReserve = 6
)

// Brief draws an explanation for a small screen: the verdict, the decisive fact, the effect of
// waiting, the remedies, and facts and funnels as far as there is room. It counts what it leaves
// out. The only errors are from w.
func Brief(w io.Writer, e *api.Explanation, opts render.Options) error {
	if opts.Wide || e.Node != nil || e.Device != nil {
		return Full(w, e, opts)
	}
	p := newPage(opts)
	room := briefLines - p.place(p.block(func(p *page) { writeBriefHead(p, e) })) - 1

	fixes, left := briefFixes(e, opts)
	var blocks []block
	for _, lines := range []int{0, 3, 2} {
		if blocks = fixBlocks(p, fixes, lines); height(blocks...) <= room-leastBelow {
			break
		}
	}
	if shown := min(len(fixes), 1) + placeable(blocks[min(len(fixes), 1):], room-leastBelow); !opts.AllRemedies && shown < len(fixes) {
		fixes, left = fixes[:shown], left+len(fixes)-shown
	}
	room -= p.place(blocks[:len(fixes)]...)
	room -= p.place(p.block(func(p *page) { writeFixNote(p, fixes, left) }))

	facts, notes := factBlocks(p, e), noteBlocks(p, e, fixes)
	more := func(facts int, notes []block) block {
		return p.block(func(p *page) { writeMore(p, e, facts, notes) })
	}
	room -= height(more(len(facts), notes)) - 1
	early := placeable(notes, room-min(notesReserve, height(facts...)+height(funnelBlock(p, e, room))))
	room -= height(notes[:early]...)
	known := placeable(facts, room)
	room -= p.place(facts[:known]...)
	room -= p.place(funnelBlock(p, e, room))
	shown := early + placeable(notes[early:], room)
	p.place(notes[:shown]...)
	p.place(more(len(facts)-known, notes[shown:]))
	return p.Print(w)
}

// writeBriefHead draws the verdict, the reason and the outlook.
func writeBriefHead(p *page, e *api.Explanation) {
	said, m := Title(e)
	if pod := ownPod(e); pod != nil && !e.Finished && (pod.Node != "" || pod.AgeSeconds > 0) {
		said += "; " + podPlace(pod)
	}
	p.Text(0, m, m.Sign()+" "+said)
	label := "Reason"
	if e.Verdict == api.Fits || e.Verdict == api.Allocated {
		label = "Result"
	}
	outlook := p.block(func(p *page) { p.labeled("Outlook", briefOutlook(e), 0) })
	p.labeled(label, cmp.Or(e.Headline, e.Summary), max(headLines-p.Lines()-outlook.lines, 1))
	p.place(outlook)
}

// briefOutlook says what waiting does, and whether one more node helps.
func briefOutlook(e *api.Explanation) string {
	if e.Outlook == nil {
		return ""
	}
	return english.Sentence(outlookText(e.Outlook, e.NodeCount))
}

func outlookText(o *api.Outlook, nodes int) string {
	more := ""
	if len(o.OneMoreNode) > 0 && o.OneMoreNode[0].Verdict == api.Fits {
		more = "one more node like " + o.OneMoreNode[0].Like
	}
	also := english.PrecededBy(", or on ", more)
	switch o.Fits {
	case api.LowerPrioritiesGone:
		return "fits when pods of lower priority end, which are not preempted (" + o.LowerPrioritiesGone.Node + ")" + also
	case api.ClaimsReleased:
		return "fits when others release their claims (" + o.ClaimsReleased.Node + ")" + also
	case api.HardwareAlone:
		return "waiting for claims does not help; fits without taints, cordons and other pods (" + o.HardwareAlone.Node + ")" + also
	case api.Never:
		where := "this node"
		if nodes > 1 {
			where = fmt.Sprintf("these %d nodes", nodes)
		}
		return "never on " + where + ", not even without other pods, taints and cordons"
	case api.OneMoreNode, api.MoreNodes, api.ConditionUnknown:
	}
	said := "not known whether waiting for claims helps"
	if o.ClaimsReleased.Verdict == api.DoesNotFit {
		said = "waiting for claims does not help"
	}
	return said + english.PrecededBy("; fits on ", more)
}

// noteBlocks returns a block for each hint and for the assumptions.
func noteBlocks(p *page, e *api.Explanation, fixes []fix) []block {
	var notes []block
	labels := labels{}
	add := func(label, kind, text string) {
		if text != "" {
			note := p.block(func(p *page) { p.labeled(labels.once(label), text, noteLines) })
			note.kind = kind
			notes = append(notes, note)
		}
	}
	for i := range e.Hints {
		add("Hint", "hint", e.Hints[i].Text)
	}
	for _, text := range e.Assumptions {
		add("Assumed", "assumption", text)
	}
	add("Others", "note", differentText(e.DifferentPods))
	for _, text := range remedyPods(e, fixes) {
		add("Note", "note", text)
	}
	if h := e.WhyHere; h != nil && len(h.NotEvaluated) > 0 {
		add("Assumed", "assumption", "not evaluated: "+english.JoinAnd(h.NotEvaluated))
	}
	return notes
}

// writeMore writes the flags that show the rest, and the number of facts and notes left out.
func writeMore(p *page, e *api.Explanation, facts int, notes []block) {
	var more []string
	for _, kind := range []string{"hint", "assumption", "note"} {
		n := 0
		for i := range notes {
			if notes[i].kind == kind {
				n++
			}
		}
		if n > 0 {
			more = append(more, english.Count(n, "more "+kind))
		}
	}
	if facts > 0 {
		more = append(more, english.Count(facts, "more fact"))
	}
	if len(e.Nodes) > 0 {
		more = append(more, "nodes")
	}
	p.Row(0, render.Cell{Text: "More", Width: briefLabel, Mark: render.Strong}, render.Cell{Text: "-o wide shows " + english.JoinAnd(append(more, "evidence")), Mark: render.Faint})
}
