// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writeDevice draws what there is to say about one device: what becomes of it, the
// checks of each request, and what the device is.
func writeDevice(p *page, e *api.Explanation) {
	d, target := e.Device, e.Target.Kind+" "+render.Qualified(e.Target.Namespace, e.Target.Name)
	name, unknown := "Device "+d.Driver+"/"+d.Pool+"/"+d.Name, e.Verdict == api.Undetermined
	headline, m := name+" is not eligible for "+target, render.Bad
	switch {
	case d.Outcome == api.Picked && unknown:
		headline, m = name+" would be picked for "+target+", as far as can be determined", render.Unsure
	case d.Outcome == api.Picked:
		headline, m = name+" is picked for "+target, render.Good
	case d.Outcome == api.Eligible && unknown:
		headline, m = name+" is eligible for "+target+"; not known whether it is picked", render.Unsure
	case d.Outcome == api.Eligible:
		headline, m = name+" is eligible for "+target+", but not picked", render.Unsure
	case d.Outcome == api.Rejected:
	default:
		headline, m = name+" is not considered for "+target, render.Unsure
	}
	p.Text(0, m, headline)
	p.Blank()
	p.Field("Reason", d.Summary)
	said, _ := Title(e)
	p.Field("Verdict", strings.TrimSpace(said+". "+e.Summary))
	for i := range d.Requests {
		writeDeviceRequest(p, &d.Requests[i], d.Summary, unknown)
	}
	p.Heading("Properties of the device")
	var facts [][]render.Cell
	title := ""
	for _, fact := range deviceFacts(d) {
		if fact[0] == title {
			fact[0] = ""
		} else {
			title = fact[0]
		}
		facts = append(facts, []render.Cell{{Text: fact[0]}, {Text: fact[1]}})
	}
	p.Rows(2, facts, labelWidth)
}

// requestClaim returns the name of the claim of a request or, before it exists, of what it is
// made from.
func requestClaim(claim api.ObjectRef, podClaim string) string {
	if claim.Kind == api.KindClaim {
		return claim.QualifiedName()
	}
	return cmp.Or(podClaim, claim.Name, "for extended resources")
}

// writeDeviceRequest draws the checks of one request: one line for each that fails
// or is not made, and those that pass in between on one line.
func writeDeviceRequest(p *page, r *api.DeviceRequest, summary string, unknown bool) {
	p.Blank()
	label := cluster.RequestTitle(r.Name, r.Container, r.ExtendedResource)
	title := english.Capitalized(label) + " of claim " + requestClaim(r.Claim, r.PodClaim)
	if r.Node != "" {
		title += ", on " + r.Node
	}
	p.Text(0, render.Strong, title+": "+outcomeText(r.Outcome, unknown))
	if r.Outcome == api.Eligible && summary != english.Sentence(label+": "+r.Message) {
		p.Text(2, render.Plain, r.Message)
	}
	checks := r.Checks
	if !p.Opts.Wide && len(checks) > 0 && checks[0].Code == api.ClassSelectorFalse {
		// The device is of another class.
		checks = checks[:1]
	}
	labels := make([]string, 0, len(checks))
	for i := range checks {
		if checks[i].Outcome != api.CheckPassed {
			labels = append(labels, checks[i].Label)
		}
	}
	const outcomeWidth = len("also fails")
	width := render.Widest(labelWidth, labels...)
	failed := false
	for i := 0; i < len(checks); i++ {
		check := &checks[i]
		said, m := checkText(check.Outcome, failed)
		first := render.Cell{Text: said, Width: outcomeWidth, Mark: m}
		if check.Outcome == api.CheckPassed && !p.Opts.Wide {
			var passed []string
			for ; i < len(checks) && checks[i].Outcome == api.CheckPassed; i++ {
				passed = append(passed, checks[i].Label)
			}
			i--
			p.Row(2, first, render.Cell{Text: strings.Join(passed, ", "), Mark: render.Faint})
			continue
		}
		name := render.Cell{Text: check.Label, Width: width}
		if check.Message == "" {
			name.Width = 0
		}
		p.Row(2, first, name, render.Cell{Text: check.Message})
		if p.Opts.Wide {
			writeEvidence(p, 2+outcomeWidth+render.ColumnGap, check.Evidence)
		}
		failed = failed || check.Outcome == api.CheckFailed
	}
}

func outcomeText(outcome api.DeviceOutcome, unknown bool) string {
	switch {
	case outcome == api.Picked && unknown:
		return "picked, as far as can be determined"
	case outcome == api.Picked:
		return "picked"
	case outcome == api.Eligible && unknown:
		return "eligible"
	case outcome == api.Eligible:
		return "eligible, not picked"
	case outcome == api.Rejected:
		return "not eligible"
	default:
		return string(outcome)
	}
}

// checkText says how a check ends, after another one has failed or not.
func checkText(outcome api.CheckOutcome, failed bool) (string, render.Mark) {
	switch {
	case outcome == api.CheckPassed:
		return "passes", render.Good
	case outcome == api.CheckFailed && failed:
		return "also fails", render.Bad
	case outcome == api.CheckFailed:
		return "fails", render.Bad
	default:
		return "not run", render.Unsure
	}
}

// deviceFacts lists, under a word each, what a device is, has and does.
func deviceFacts(d *api.DeviceExplanation) [][2]string {
	facts := [][2]string{
		{"slice", fmt.Sprintf("%s, generation %d of the pool", d.Slice, d.Generation)},
		{"usable on", usableOn(d)},
	}
	add := func(title, text string) { facts = append(facts, [2]string{title, text}) }
	for i := range d.Holders {
		add("allocated to", holderText(&d.Holders[i]))
	}
	switch {
	case len(d.Holders) > 0 && d.HoldersUnknown != "":
		add("allocated to", "possibly more claims: "+d.HoldersUnknown)
	case d.HoldersUnknown != "":
		add("allocated to", "not known: "+d.HoldersUnknown)
	case len(d.Holders) == 0:
		add("allocated to", "no claim")
	}
	for _, taint := range d.Taints {
		text := taint.Taint
		if !taint.Since.IsZero() {
			text += ", since " + taint.Since.UTC().Format(time.RFC3339)
		}
		add("taint", text+", from "+taint.Evidence.Object.String())
	}
	for _, health := range d.Health {
		text := health.Health + ", reported in the status of pod " + health.Pod.QualifiedName()
		if health.Message != "" {
			text += ": " + health.Message
		}
		add("health", text)
	}
	if d.Shared {
		add("shared", "can be shared by several claims")
	}
	for _, c := range d.Capacity {
		text := c.Name + " " + inventory.QuantityText(c.Total)
		if c.Available != "" {
			text += fmt.Sprintf(": %s consumed, %s available", inventory.QuantityText(c.Consumed), inventory.QuantityText(c.Available))
		}
		add("capacity", text)
	}
	for i := range d.Counters {
		add("counter", counterText(&d.Counters[i]))
	}
	if len(d.BindingConditions) > 0 {
		add("binding", "must become true: "+strings.Join(d.BindingConditions, ", "))
	}
	if len(d.BindingFailureConditions) > 0 {
		add("binding", "fails on: "+strings.Join(d.BindingFailureConditions, ", "))
	}
	for _, a := range d.Attributes {
		add("attribute", a.Name+" "+a.Value)
	}
	return facts
}

func usableOn(d *api.DeviceExplanation) string {
	if d.NodeCount == 1 || d.NodeCount == 0 && d.Nodes == "no node" {
		return d.Nodes
	}
	return fmt.Sprintf("%s (%s)", d.Nodes, english.Count(d.NodeCount, "node"))
}

func holderText(h *api.DeviceHolder) string {
	said := "claim " + render.Qualified(h.Namespace, h.Name) + ", request " + h.Request
	if h.ShareID != "" {
		said += ", share " + h.ShareID
	}
	for _, name := range slices.Sorted(maps.Keys(h.ConsumedCapacity)) {
		said += fmt.Sprintf(", %s %s", inventory.QuantityText(h.ConsumedCapacity[name]), name)
	}
	if h.AdminAccess {
		said += ", admin access"
	}
	if !h.Since.IsZero() {
		said += ", since " + h.Since.UTC().Format(time.RFC3339)
	}
	if len(h.ReservedFor) > 0 {
		said += ", reserved for " + strings.Join(english.Texts(h.ReservedFor, api.ObjectRef.Argument), ", ")
	}
	if len(h.Conditions) > 0 {
		said += "; " + strings.Join(h.Conditions, ", ")
	}
	return said
}

func counterText(c *api.DeviceCounter) string {
	said := fmt.Sprintf("%s of %s/%s", inventory.QuantityText(c.Consumes), c.CounterSet, c.Counter)
	if c.Total != "" {
		said += fmt.Sprintf(": %s of %s available", inventory.QuantityText(c.Available), inventory.QuantityText(c.Total))
	}
	if len(c.UsedBy) > 0 {
		said += ", used by " + strings.Join(english.Collapse(c.UsedBy), ", ")
	}
	if len(c.CompatibilityGroups) > 0 {
		said += "; compatibility groups " + strings.Join(c.CompatibilityGroups, ", ")
	}
	return said
}
