// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

const (
	// shownGroups is how many groups of nodes are listed by default.
	shownGroups = 8
	// shownNames is how many names of a long list are shown by default.
	shownNames = 3
	// labelWidth is the most that the column of labels takes.
	labelWidth = 22
	// whereWidth is the most that the column of places takes from one of
	// messages, messageWidth what it must leave of that.
	whereWidth   = 44
	messageWidth = 36
)

func (p *page) claims(e *explain.Explanation) {
	for i := range e.Claims {
		claim := &e.Claims[i]
		p.blank()
		if len(e.Claims) > 1 || e.Target.Kind != "ResourceClaim" {
			p.text(0, strong, claimTitle(claim))
		}
		if claim.Allocation != nil {
			p.allocation(claim.Allocation)
		}
		inTitle := len(claim.Requests) == 1
		for j := range claim.Requests {
			if j > 0 {
				p.blank()
			}
			title := requestTitle(&claim.Requests[j])
			if inTitle {
				for _, constraint := range claim.Constraints {
					title += ", all with " + constraint
				}
			}
			p.text(0, strong, title)
			p.funnel(&claim.Requests[j])
		}
		if !inTitle {
			for _, constraint := range claim.Constraints {
				p.text(0, plain, "Constraint: "+constraint)
			}
		}
	}
}

func claimTitle(claim *explain.ClaimExplanation) string {
	title := "ResourceClaim " + qualified(claim.Namespace, claim.Name)
	if claim.Name == "" {
		title = "ResourceClaim that is not generated yet"
	}
	switch {
	case claim.ExtendedResources:
		title += ", made by the scheduler for the extended resources of the pod"
	case claim.PodClaim != "" && claim.Template != "":
		title += fmt.Sprintf(", %s of the pod, from template %s", claim.PodClaim, claim.Template)
	case claim.PodClaim != "":
		title += fmt.Sprintf(", %s of the pod", claim.PodClaim)
	case claim.Template != "":
		title += ", from template " + claim.Template
	}
	return title
}

func requestTitle(r *explain.RequestExplanation) string {
	needs := strconv.FormatInt(r.Needs, 10)
	if r.Needs == 0 {
		needs = "all devices"
	}
	title := fmt.Sprintf("Request %s: %s", r.Name, needs)
	if r.DeviceClass != "" {
		title += " of class " + r.DeviceClass
	}
	if r.AdminAccess {
		title += ", with admin access"
	}
	return title
}

// funnel draws how the devices of all pools become those that are left.
func (p *page) funnel(r *explain.RequestExplanation) {
	labels, messages, places := make([]string, len(r.Rejected)), make([]string, len(r.Rejected)), make([]string, len(r.Rejected))
	numbers := []string{strconv.Itoa(r.Considered), strconv.Itoa(r.Eligible), "----"}
	for i := range r.Rejected {
		labels[i], messages[i], places[i] = r.Rejected[i].Label, r.Rejected[i].Message, r.Rejected[i].Where
		numbers = append(numbers, "-"+strconv.Itoa(r.Rejected[i].Count))
	}
	number := max(widest(12, numbers...), 5)
	label := widest(labelWidth, labels...)
	margin := number + label + 2*columnGap
	message, beside := columns(p.opts.Width-margin, messages, places)

	p.row(0, cell{text: numbers[0], width: number, right: true}, cell{text: consideredText(r)})
	for i := range r.Rejected {
		rejection := &r.Rejected[i]
		cells := []cell{
			{text: "-" + strconv.Itoa(rejection.Count), width: number, right: true, mark: bad},
			{text: rejection.Label, width: label},
			{text: rejection.Message},
		}
		switch {
		case beside:
			cells[2].width = message
			cells = append(cells, cell{text: rejection.Where, mark: faint})
		case rejection.Where != "":
			cells[2].text += " (" + rejection.Where + ")"
		}
		p.row(0, cells...)
		p.evidence(margin, rejection)
	}
	p.row(0, cell{text: "----", width: number, right: true})
	m := bad
	if enough(r) {
		m = good
	}
	p.row(0, cell{text: numbers[1], width: number, right: true, mark: m}, cell{text: leftText(r)})
	if p.opts.Wide && len(r.EligibleDevices) > 0 {
		p.text(number+columnGap, faint, strings.Join(r.EligibleDevices, ", "))
	}
}

// evidence lists the proof of a rejection and its devices, if asked for.
func (p *page) evidence(margin int, r *explain.Rejection) {
	if !p.opts.Wide {
		return
	}
	for _, e := range r.Evidence {
		p.text(margin, faint, evidenceText(e))
	}
	if len(r.Devices) > 0 {
		p.text(margin, faint, strings.Join(r.Devices, ", "))
	}
}

func evidenceText(e explain.Evidence) string {
	said := e.Object
	if e.Path != "" {
		said += " " + e.Path
	}
	if e.Found != "" {
		said += ": found " + e.Found
	}
	if e.Wanted != "" {
		said += ", wanted " + e.Wanted
	}
	if e.Count > 0 {
		said += " (" + count(e.Count, "device") + ")"
	}
	return said
}

func consideredText(r *explain.RequestExplanation) string {
	if r.Pools == 0 {
		return "devices: there is no pool"
	}
	noun := "devices"
	if r.Considered == 1 {
		noun = "device"
	}
	return noun + " in " + count(r.Pools, "pool")
}

// enough is true if one node alone has as many eligible devices as needed.
func enough(r *explain.RequestExplanation) bool {
	return r.Eligible > 0 && int64(r.MostOnOneNode) >= max(r.Needs, 1)
}

func leftText(r *explain.RequestExplanation) string {
	if r.Eligible == 0 {
		return "left"
	}
	said := "left on " + count(r.EligibleNodes, "node")
	if r.EligibleNodes == 0 {
		return "left, but no node can reach them"
	}
	if !enough(r) {
		said += fmt.Sprintf(", but never %d on one", max(r.Needs, 1))
	}
	if r.EligibleNodes > 1 {
		said += fmt.Sprintf(": the most is %d", r.MostOnOneNode)
		if r.BestNode != "" {
			said += " (" + r.BestNode + ")"
		}
	} else if r.BestNode != "" {
		said += " (" + r.BestNode + ")"
	}
	return said
}

// allocation draws the devices that a claim holds and for whom.
func (p *page) allocation(a *explain.Allocation) {
	said := "Holds " + count(len(a.Devices), "device")
	if !a.Since.IsZero() {
		said += " since " + a.Since.UTC().Format(time.RFC3339)
	}
	if a.AgeSeconds > 0 {
		said += " (" + duration.HumanDuration(time.Duration(a.AgeSeconds)*time.Second) + ")"
	}
	if a.Nodes != "" {
		said += ", usable on " + a.Nodes
	}
	p.text(0, plain, said)
	p.devices(2, a.Devices)
	if len(a.ReservedFor) == 0 {
		p.text(0, plain, "Reserved for nobody")
		return
	}
	p.text(0, plain, "Reserved for "+p.sample(a.ReservedFor))
}

func deviceText(d *explain.AllocatedDevice) string {
	said := d.Driver + "/" + d.Pool + "/" + d.Device
	if d.ShareID != "" {
		said += ", share " + d.ShareID
	}
	for _, name := range slices.Sorted(maps.Keys(d.ConsumedCapacity)) {
		said += fmt.Sprintf(", %s %s", d.ConsumedCapacity[name], name)
	}
	if d.AdminAccess {
		said += ", admin access"
	}
	if d.Missing {
		said += ", MISSING: no ResourceSlice has it any more"
	}
	return said
}

// nodes lists the groups of nodes with the same answer.
func (p *page) nodes(e *explain.Explanation) {
	if len(e.Nodes) == 0 {
		return
	}
	if len(e.Nodes) == 1 && strings.EqualFold(e.Nodes[0].Message, strings.TrimSuffix(e.Summary, ".")) {
		// It is the same for all nodes, and has been said.
		return
	}
	p.blank()
	p.text(0, strong, "Nodes")
	shown := e.Nodes
	if !p.opts.Wide && len(shown) > shownGroups {
		shown = shown[:shownGroups]
	}
	numbers, messages, names := make([]string, len(shown)), make([]string, len(shown)), make([]string, len(shown))
	for i := range shown {
		numbers[i], names[i] = strconv.Itoa(shown[i].Count), p.sample(shown[i].Names)
		messages[i], _ = groupText(&shown[i])
	}
	number := max(widest(12, numbers...), 3)
	message, beside := columns(p.opts.Width-2-number-columnGap, messages, names)
	for i := range shown {
		said, m := groupText(&shown[i])
		cells := []cell{
			{text: numbers[i], width: number, right: true, mark: m},
			{text: said},
		}
		if beside {
			cells[1].width = message
			p.row(2, append(cells, cell{text: names[i], mark: faint})...)
			continue
		}
		p.row(2, cells...)
		p.text(2+number+columnGap, faint, names[i])
	}
	if rest := e.Nodes[len(shown):]; len(rest) > 0 {
		n := 0
		for i := range rest {
			n += rest[i].Count
		}
		p.text(2, faint, fmt.Sprintf("… and %s with %s: -o wide lists them", count(len(rest), "more group"), count(n, "node")))
	}
}

// columns divides room among messages and the places they are about. It returns
// the width for the messages, or false if the places do not fit beside them.
func columns(room int, messages, places []string) (message int, beside bool) {
	message, place := widest(room, messages...), widest(room, places...)
	if message+columnGap+place <= room {
		return message, place > 0
	}
	message = room - columnGap - place
	return message, place <= whereWidth && message >= messageWidth
}

func groupText(g *explain.NodeGroup) (string, mark) {
	switch g.Verdict {
	case explain.Fits, explain.Allocated:
		said := "fits"
		if g.Score != 0 {
			said += fmt.Sprintf(" (score %d)", g.Score)
		}
		if g.Message != "" {
			said += ": " + g.Message
		}
		return said, good
	case explain.Undetermined:
		return orElse(g.Message, "cannot be decided"), unsure
	case explain.DoesNotFit, explain.Error:
		return orElse(g.Message, string(g.Code)), bad
	default:
		return orElse(g.Message, string(g.Verdict)), unsure
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// sample names all of a short list, and a few of a long one.
func (p *page) sample(names []string) string {
	if p.opts.Wide || len(names) <= shownNames+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s … and %d more", strings.Join(names[:shownNames], ", "), len(names)-shownNames)
}
