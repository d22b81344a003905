// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
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

// mostFixes is how many remedies and next steps a brief answer has.
const mostFixes = 3

// briefFixes returns the first remedies and next steps, and how many are left out. Something
// to wait for makes room for what somebody can do.
func briefFixes(e *api.Explanation, opts render.Options) (fixes []fix, left int) {
	all := fixesOf(e)
	if opts.AllRemedies {
		return all, e.MoreRemedies
	}
	for spare := len(all) - mostFixes; spare > 0; spare-- {
		last := len(all) - 1
		if i := slices.IndexFunc(all, fix.waits); i >= 0 && !all[last].waits() {
			for later := i + 1; later < len(all); later++ {
				if all[later].waits() {
					last = later
				}
			}
		}
		all = slices.Delete(all, last, last+1)
		left++
	}
	return all, left + e.MoreRemedies
}

// fixBlocks draws what can be done, a block each, of at most so many lines; 0 means all.
func fixBlocks(p *page, fixes []fix, lines int) []block {
	t := newFixTable(p, briefLabel+render.ColumnGap, fixes)
	labels := labels{}
	blocks := make([]block, 0, len(fixes))
	for i := range fixes {
		f, label, number := fixes[i], "Next", ""
		if f.remedy != nil {
			label, number = "Fix", strconv.Itoa(i+1)
		}
		if f.waits() {
			// The text says that it is waited for.
			f.actor = ""
		}
		cells := t.row(&f, lines, render.Cell{Text: labels.once(label), Width: len("Next"), Mark: render.Strong},
			render.Cell{Text: number, Width: briefLabel - len("Next") - render.ColumnGap, Right: true, Mark: render.Strong})
		b := p.block(func(p *page) { p.TableRow(0, cells...) })
		if p.Opts.Commands {
			b.text = append(b.text, p.block(func(p *page) { p.Verbatim(t.margin, cmp.Or(f.diff, strings.Join(f.commands, "\n"))) }).text...)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// writeFixNote writes how to get the commands, and how many fixes are left out.
func writeFixNote(p *page, shown []fix, left int) {
	var said []string
	switch {
	case p.Opts.Commands:
	case slices.ContainsFunc(shown, func(f fix) bool { return f.diff != "" }):
		said = append(said, "--commands prints the change of the file")
	case slices.ContainsFunc(shown, func(f fix) bool { return len(f.commands) > 0 }):
		said = append(said, "--commands prints the commands")
	}
	if left > 0 {
		said = append(said, fmt.Sprintf("%d more: --all-remedies", left))
	}
	if len(said) > 0 {
		p.Row(briefLabel+render.ColumnGap, render.Cell{Text: strings.Join(said, "; "), Mark: render.Faint})
	}
}

// factBlocks returns a block for each kind of facts besides the funnels.
func factBlocks(p *page, e *api.Explanation) []block {
	var facts []block
	labels := labels{}
	add := func(label string, texts ...string) {
		for _, text := range texts {
			if text != "" {
				facts = append(facts, p.block(func(p *page) { p.labeled(labels.once(label), text, noteLines) }))
			}
		}
	}
	if ownPod(e) == nil && len(e.Pods) > 0 {
		pod := &e.Pods[0]
		said := render.Qualified(pod.Namespace, pod.Name) + ": " + podPlace(pod)
		if rest := max(e.PodCount, len(e.Pods)) - 1; rest > 0 {
			said += "; and " + english.Count(rest, "more pod")
		}
		add("Pod", said)
	}
	if membersVerdict(e) == "" {
		add(memberTitle(e), memberCounts(e))
	}
	if m := e.Members; m != nil {
		for i := range m.Prospects {
			if m.Prospects[i].Verdict == api.Fits {
				add("All fit", prospectText(&m.Prospects[i], m))
			}
		}
	}
	if e.SameAs.Kind != "" {
		add("Same as", "Pod "+render.Qualified(e.SameAs.Namespace, e.SameAs.Name)+", which is equal for the scheduler: see there for nodes and remedies")
	}
	if e.Placement != nil {
		var picks []requestDevices
		for i := range e.Placement.Claims {
			claim := &e.Placement.Claims[i]
			picks = append(picks, devicesByRequest(len(e.Placement.Claims) > 1, cmp.Or(claim.PodClaim, claim.Name), claim.Devices)...)
		}
		facts = append(facts, deviceBlocks(p, "Picks", picks)...)
	}
	if e.Verdict != api.Fits {
		add("Domain", domainTexts(p, e)...)
		for i := range e.StageEvidence[:min(len(e.StageEvidence), shownEvidence)] {
			add("Evidence", stageFact(&e.StageEvidence[i], false))
		}
	}
	var allocated []requestDevices
	var users []string
	for i := range e.Claims {
		claim := &e.Claims[i]
		if claim.Allocation != nil {
			allocated = append(allocated, devicesByRequest(len(e.Claims) > 1, cmp.Or(claim.PodClaim, claim.Name), claim.Allocation.Devices)...)
			users = append(users, usersText(p, e, english.Texts(claim.Allocation.ReservedFor, api.ObjectRef.Argument)))
		}
	}
	facts = append(facts, deviceBlocks(p, "Devices", allocated)...)
	add("Topology", alignmentTexts(e.Alignment)...)
	add("Users", users...)
	add("Why here", whyHereTexts(e.WhyHere)...)
	return facts
}

// alignmentTexts says what devices have in common.
func alignmentTexts(list []api.Alignment) []string {
	texts := make([]string, 0, len(list))
	for i := range list {
		texts = append(texts, inventory.AlignmentText(&list[i]))
	}
	return texts
}

// usersText says who uses a claim, empty if that is only the target.
func usersText(p *page, e *api.Explanation, users []string) string {
	const reserved = "Reserved for "
	switch {
	case len(users) == 0:
		return "Not reserved for any pod"
	case len(users) > 1 || e.Target.Kind != api.KindPod:
		return reserved + p.Some(users, len(users), p.Width-briefLabel-render.ColumnGap-len(reserved))
	default:
		return ""
	}
}

// requestDevices are the devices of a request that have a pool and remarks in common.
type requestDevices struct{ request, devices string }

// devicesByRequest sums up the devices of a claim, which requests are called by if there are
// several claims.
func devicesByRequest(several bool, claim string, devices []api.AllocatedDevice) []requestDevices {
	var list []requestDevices
	for i := 0; i < len(devices); {
		d, notes := &devices[i], deviceNotes(&devices[i])
		request := d.Request
		switch {
		case d.Container != "":
			request = cluster.RequestTitle(d.Request, d.Container, d.ExtendedResource)
		case several:
			request = claim + "." + request
		}
		var names []string
		for ; i < len(devices); i++ {
			next := &devices[i]
			if next.Request != d.Request || next.Container != d.Container || next.Driver != d.Driver || next.Pool != d.Pool || deviceNotes(next) != notes {
				break
			}
			names = append(names, next.Device)
		}
		list = append(list, requestDevices{request, d.Driver + "/" + d.Pool + "/" + strings.Join(english.Collapse(names), ", ") + notes})
	}
	return list
}

// deviceBlocks lists devices, a block for each request. Names that are too long for the column
// stand below the request.
func deviceBlocks(p *page, label string, list []requestDevices) []block {
	requests := make([]string, len(list))
	for i := range list {
		requests[i] = list[i].request
	}
	width := render.Widest(30, requests...)
	room := p.Width - briefLabel - width - 2*render.ColumnGap
	blocks := make([]block, 0, len(list))
	labels := labels{}
	for _, d := range list {
		blocks = append(blocks, p.block(func(p *page) {
			if render.Widest(render.Unlimited, strings.Fields(d.devices)...) > room {
				p.Row(0, render.Cell{Text: labels.once(label), Width: briefLabel, Mark: render.Strong}, render.Cell{Text: d.request})
				p.Row(2, render.Cell{Text: d.devices, Lines: noteLines})
				return
			}
			p.Row(0, render.Cell{Text: labels.once(label), Width: briefLabel, Mark: render.Strong}, render.Cell{Text: d.request, Width: width}, render.Cell{Text: d.devices, Lines: noteLines})
		}))
	}
	return blocks
}

// whyHereTexts lists the reasons for the node and the devices of a pod, without checks that were not evaluated.
func whyHereTexts(h *api.WhyHere) []string {
	if h == nil || len(h.Nodes) == 0 {
		return nil
	}
	var said []string
	switch n := fitting(h.Nodes); {
	case h.FitsHere && h.NodeCount == 1:
	case !h.FitsHere:
		said = append(said, "it would not fit on "+h.Node+" again, as the cluster is now")
	case n == 1:
		said = append(said, fmt.Sprintf("%s is the only one of %s where it fits now", h.Node, english.Count(h.NodeCount, "node")))
	default:
		said = append(said, fmt.Sprintf("%s is one of %s where it fits now", h.Node, english.Count(n, "node")))
	}
	for i := range h.Alternatives {
		said = append(said, alternativeText(&h.Alternatives[i]))
	}
	for i := range h.Smaller {
		said = append(said, smallerText(&h.Smaller[i]))
	}
	return said
}

// ownPod returns the target, if it is a pod.
func ownPod(e *api.Explanation) *api.PodStatus {
	for i := range e.Pods {
		if e.Target.Kind == api.KindPod && e.Pods[i].Namespace == e.Target.Namespace && e.Pods[i].Name == e.Target.Name {
			return &e.Pods[i]
		}
	}
	return nil
}
