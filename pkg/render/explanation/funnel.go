// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

const (
	// labelWidth limits the width of the column of labels.
	labelWidth = 22
	// asideEdge is the right edge of the aside in the first line.
	asideEdge = 100
	// columnsRoom is the width that messages need beside the labels; with less, the two are
	// one column.
	columnsRoom = 30
)

func writeClaims(p *page, e *api.Explanation) {
	for i := range e.Claims {
		claim := &e.Claims[i]
		if nothingToSay(e) {
			// The head has said it.
			continue
		}
		titled := len(e.Claims) > 1 || e.Target.Kind != api.KindClaim && claimField(e) == ""
		if titled {
			p.Heading(claimTitle(claim))
		}
		if claim.Allocation != nil {
			writeAllocation(p, claim.Allocation, titled)
		}
		writeRequests(p, claim, titled)
	}
}

// nothingToSay reports whether there is but one claim and the head has said all.
func nothingToSay(e *api.Explanation) bool {
	if len(e.Claims) != 1 {
		return false
	}
	claim := &e.Claims[0]
	return claim.Allocation == nil && len(claim.Requests) == 0 && len(claim.Constraints) == 0
}

// claimField names the only claim of a target in the head.
func claimField(e *api.Explanation) string {
	if len(e.Claims) != 1 || e.Target.Kind == api.KindClaim || e.Claims[0].Allocation != nil || len(e.Claims[0].Requests) == 0 {
		return ""
	}
	return claimName(&e.Claims[0])
}

// writeRequests draws the funnels of a claim, the first right below its title if it
// has one.
func writeRequests(p *page, claim *api.ClaimExplanation, titled bool) {
	single := len(claim.Requests) == 1
	for i := range claim.Requests {
		r := &claim.Requests[i]
		title := requestTitle(r)
		if single && len(claim.Constraints) > 0 {
			title += " with " + strings.Join(claim.Constraints, " and ")
		}
		if i > 0 || !titled {
			p.Blank()
		}
		p.Text(0, render.Strong, title)
		writeFunnel(p, r)
	}
	if !single {
		for _, constraint := range claim.Constraints {
			p.Text(0, render.Plain, "Constraint: "+constraint)
		}
	}
}

func claimTitle(claim *api.ClaimExplanation) string {
	if claim.Name == "" && !claim.ExtendedResources && claim.Template == "" && claim.PodClaim != "" {
		return fmt.Sprintf("Claim %s of the pod", claim.PodClaim)
	}
	return "ResourceClaim " + claimName(claim)
}

// claimName returns the name of a claim and its source.
func claimName(claim *api.ClaimExplanation) string {
	name := render.Qualified(claim.Namespace, claim.Name)
	var from []string
	if claim.PodClaim != "" {
		from = append(from, claim.PodClaim+" of the pod")
	}
	if claim.Template != "" {
		from = append(from, "template "+claim.Template)
	}
	switch {
	case claim.ExtendedResources && claim.Name == "":
		name = "to be created by the scheduler, for the extended resources of the pod"
	case claim.ExtendedResources:
		from = append(from, "created by the scheduler for the extended resources of the pod")
	case claim.Name == "":
		name = "not created yet"
	}
	if len(from) > 0 {
		name += " (" + strings.Join(from, ", ") + ")"
	}
	return name
}

func requestTitle(r *api.RequestExplanation) string {
	request, alternative, _ := strings.Cut(r.Name, "/")
	title := "Request " + request
	if alternative != "" {
		title += ", alternative " + alternative
	}
	if r.ExtendedResource != "" {
		title = "Extended resource " + r.ExtendedResource
		if r.Container != "" {
			title += " of container " + r.Container
		}
	}
	needs := "all devices"
	if r.Needs > 0 {
		needs = english.Count(int(r.Needs), "device")
	}
	title += ": " + needs
	if r.DeviceClass != "" {
		title += " of class " + r.DeviceClass
	}
	if r.AdminAccess {
		title += ", with admin access"
	}
	return title
}

// writeFunnel draws the way from the devices of the class to the available ones: one line
// for each check that rejects some.
func writeFunnel(p *page, r *api.RequestExplanation) {
	first, rows := funnelRows(p, r)
	rows, rest := someReasons(p, rows)
	places := english.Texts(rows, func(row funnelRow) string { return row.place })
	numbers := english.Texts(rows, func(row funnelRow) string { return "-" + strconv.Itoa(row.count) })
	number := max(render.Widest(12, append([]string{strconv.Itoa(first.count), strconv.Itoa(r.Eligible)}, numbers...)...), 5)
	label := render.Widest(labelWidth, english.Texts(rows, funnelRow.labelOf)...)
	margin := number + label + 2*render.ColumnGap
	message, beside := p.MessageColumn(margin, english.Texts(rows, func(row funnelRow) string { return row.text }), places)
	edge := margin + message
	if beside {
		edge += render.ColumnGap + render.Widest(p.Table, places...)
	}

	writeOpeningLine(p, number, min(edge, asideEdge), first)
	if len(rows) == 0 && first.count == 0 {
		// Without devices nothing is left.
		return
	}
	for i := range rows {
		row := &rows[i]
		cells := []render.Cell{{Text: numbers[i], Width: number, Right: true, Mark: row.mark}}
		said := row.text
		if !beside {
			said = row.textAtPlace()
		}
		switch {
		case p.Table-margin < columnsRoom:
			cells = append(cells, render.Cell{Text: joined(row.label, said)})
		case beside:
			cells = append(cells, render.Cell{Text: row.label, Width: label}, render.Cell{Text: said, Width: message}, render.Cell{Text: row.place, Mark: render.Faint})
		default:
			cells = append(cells, render.Cell{Text: row.label, Width: label}, render.Cell{Text: said})
		}
		p.TableRow(0, cells...)
		if p.Opts.Wide {
			writeEvidence(p, number+render.ColumnGap, row.rejection.Evidence)
			p.DeviceList(number+render.ColumnGap, row.rejection.Devices)
		}
	}
	if len(rest) > 0 {
		p.Text(number+render.ColumnGap, render.Faint, moreReasons(rest))
	}
	p.Row(0, render.Cell{Text: "----", Width: number, Right: true})
	p.Row(0, render.Cell{Text: strconv.Itoa(r.Eligible), Width: number, Right: true, Mark: availableMark(r)}, render.Cell{Text: availableText(p, r)})
	if p.Opts.Wide {
		p.DeviceList(number+render.ColumnGap, r.EligibleDevices)
		writeSelectors(p, 2, r.Selectors)
	}
}

// opening is the first line of a funnel: the number of devices, and at its right the
// excluded ones.
type opening struct {
	count       int
	text, aside string
}

// funnelRow is a line of a funnel.
type funnelRow struct {
	count       int
	label, text string
	// list has the items of a text that lists.
	list []string
	// place names the rejected devices, or their nodes.
	place string
	mark  render.Mark
	// rejection has the evidence; nil for available devices, and for several rejections in one line.
	rejection *api.Rejection
}

func (r funnelRow) labelOf() string { return r.label }

// textAtPlace returns the text with the place behind it.
func (r funnelRow) textAtPlace() string {
	if r.place == "" {
		return r.text
	}
	return strings.TrimSpace(r.text + " (" + r.place + ")")
}

// funnelRows says how many devices there are, and lists the rejections.
// Devices of other classes are only counted, unless somebody wants all of it.
func funnelRows(p *page, r *api.RequestExplanation) (first opening, rows []funnelRow) {
	for i := range r.Rejected {
		row := funnelRow{count: r.Rejected[i].Count, label: r.Rejected[i].Label, text: r.Rejected[i].Message, place: r.Rejected[i].Where, mark: render.Bad, rejection: &r.Rejected[i]}
		if p.oneNode {
			row.place = render.DeviceNames(r.Rejected[i].Devices)
		}
		rows = append(rows, row)
	}
	if p.Opts.Wide || len(rows) == 0 || rows[0].rejection.Code != api.ClassSelectorFalse {
		return opening{count: r.Considered, text: consideredText(r)}, rows
	}
	others := &rows[0]
	first = opening{count: r.Considered - others.count, text: devicesWord(r.Considered-others.count) + " of the class"}
	if first.count > 0 {
		first.aside = fmt.Sprintf("%d of %s belong to other classes", others.count, english.Count(r.Considered, "device"))
	} else {
		first.text += fmt.Sprintf("; the %s of other classes: %s", english.Count(others.count, "device"), others.text)
	}
	return first, rows[1:]
}

// writeOpeningLine puts the aside to the right edge of the table, or behind the text
// if there is no room.
func writeOpeningLine(p *page, number, edge int, first opening) {
	cells := []render.Cell{{Text: strconv.Itoa(first.count), Width: number, Right: true}, {Text: first.text}}
	if first.aside != "" {
		text, aside := render.Widest(p.Table, first.text), render.Widest(p.Table, first.aside)
		least := number + text + 2*render.ColumnGap
		if least+aside <= p.Table {
			cells[1].Width = max(edge-aside, least) - number - 2*render.ColumnGap
			cells = append(cells, render.Cell{Text: first.aside, Mark: render.Faint})
		} else {
			cells[1].Text += " (" + first.aside + ")"
		}
	}
	p.TableRow(0, cells...)
}

// joined puts a label and its message into one text.
func joined(label, message string) string {
	if label == "" || message == "" {
		return label + message
	}
	return label + ": " + message
}

// writeEvidence lists the proof of a rejection.
func writeEvidence(p *page, indent int, facts []api.Evidence) {
	if len(facts) == 0 {
		return
	}
	p.Text(indent, render.Faint, "Evidence")
	for _, fact := range facts {
		p.List(indent+2, render.Faint, []string{evidenceText(fact)})
	}
}

func evidenceText(e api.Evidence) string {
	said := e.Object.String()
	if e.Path != "" {
		said += " " + e.Path
	}
	if e.Found != "" {
		said += ": found " + e.Found
	}
	if e.Required != "" {
		said += ", required " + e.Required
	}
	if e.Count > 1 {
		said += " (" + english.Count(e.Count, "device") + ")"
	}
	return said
}

func consideredText(r *api.RequestExplanation) string {
	if r.Pools == 0 {
		return "devices: no pool has been published"
	}
	return devicesWord(r.Considered) + " in " + english.Count(r.Pools, "pool")
}

func devicesWord(n int) string {
	if n == 1 {
		return "device"
	}
	return "devices"
}

// enough reports whether one node alone has as many eligible devices as needed.
func enough(r *api.RequestExplanation) bool {
	return r.Eligible > 0 && int64(r.MostOnOneNode) >= max(r.Needs, 1)
}

// availableMark marks whether there are enough.
func availableMark(r *api.RequestExplanation) render.Mark {
	if enough(r) {
		return render.Good
	}
	return render.Bad
}

// availableText says where the available devices are.
func availableText(p *page, r *api.RequestExplanation) string {
	if p.oneNode {
		return availableOnNode(r)
	}
	switch {
	case r.Eligible == 0:
		return "available"
	case r.EligibleNodes == 0:
		return "eligible, but no node can reach them"
	}
	best := ""
	if r.BestNode != "" {
		best = " (" + r.BestNode + ")"
	}
	said := "available on " + english.Count(r.EligibleNodes, "node")
	if r.EligibleNodes > 1 {
		said += fmt.Sprintf(", at most %d on one node", r.MostOnOneNode)
	}
	said += best
	if !enough(r) {
		said += fmt.Sprintf("; %d needed on one node", max(r.Needs, 1))
	}
	return said
}

// someReasons leaves out what would flood the page.
func someReasons(p *page, rows []funnelRow) (shown, rest []funnelRow) {
	if !p.oneNode || p.Opts.Wide || len(rows) <= shownReasons+1 {
		return rows, nil
	}
	return rows[:shownReasons], rows[shownReasons:]
}

// moreReasons counts the reasons left out.
func moreReasons(rest []funnelRow) string {
	devices := 0
	for i := range rest {
		devices += rest[i].count
	}
	return fmt.Sprintf("and %s for %s: -o wide lists them", english.Count(len(rest), "more reason"), english.Count(devices, "device"))
}

// availableOnNode says how many devices of the one node are available, and
// which.
func availableOnNode(r *api.RequestExplanation) string {
	if r.Eligible == 0 {
		return "available"
	}
	said := "available: " + render.DeviceNames(r.EligibleDevices)
	if !enough(r) {
		said += fmt.Sprintf("; %d needed", max(r.Needs, 1))
	}
	return said
}

// shownReasons is how many reasons one request shows for the devices of a node.
const shownReasons = 30

// writeAllocation draws the allocated devices of a claim, and its consumers.
func writeAllocation(p *page, a *api.Allocation, titled bool) {
	if !titled {
		p.Blank()
	}
	said := "Allocated: " + english.Count(len(a.Devices), "device")
	if a.Nodes != "" {
		said += ", usable on " + a.Nodes
	}
	if !a.Since.IsZero() {
		said += ", since " + a.Since.UTC().Format(time.RFC3339)
	}
	if a.AgeSeconds > 0 {
		said += " (" + render.Age(a.AgeSeconds) + ")"
	}
	p.Text(0, render.Plain, said)
	writeDevices(p, 2, a.Devices)
	if len(a.ReservedFor) == 0 {
		p.Text(0, render.Plain, "Not reserved for any pod")
		return
	}
	const reserved = "Reserved for "
	p.Text(0, render.Plain, reserved+p.Some(english.Texts(a.ReservedFor, api.ObjectRef.Argument), len(a.ReservedFor), p.Width-len(reserved)))
}

// writeDevices lists allocated devices, the requests in a column of their own.
func writeDevices(p *page, indent int, devices []api.AllocatedDevice) {
	rows := make([][]render.Cell, 0, len(devices))
	for i := range devices {
		d := &devices[i]
		request := d.Request
		if d.Container != "" {
			request = cluster.RequestTitle(d.Request, d.Container, d.ExtendedResource)
		}
		rows = append(rows, []render.Cell{{Text: request}, {Text: deviceText(d)}})
	}
	p.Rows(indent, rows, 30)
}

func deviceText(d *api.AllocatedDevice) string {
	said := d.Driver + "/" + d.Pool + "/" + d.Device
	if d.ShareID != "" {
		said += ", share " + d.ShareID
	}
	said += deviceNotes(d)
	return said
}

// deviceNotes lists the peculiarities of an allocated device.
func deviceNotes(d *api.AllocatedDevice) string {
	said := ""
	for _, name := range slices.Sorted(maps.Keys(d.ConsumedCapacity)) {
		said += fmt.Sprintf(", %s %s", inventory.QuantityText(d.ConsumedCapacity[name]), name)
	}
	if d.AdminAccess {
		said += ", admin access"
	}
	if network := render.NetworkText(d.Status); network != "" {
		said += ", network " + network
	}
	for _, odd := range render.OddConditions(d.Status, inventory.ConditionText) {
		said += ", " + odd
	}
	if data := render.DataText(d.Status); data != "" {
		said += ", " + data
	}
	if d.Missing {
		said += ", MISSING: no longer in any ResourceSlice"
	}
	return said
}
