// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

const (
	// labelWidth is the most that the column of labels takes.
	labelWidth = 22
	// whereWidth is the most that the column of places takes from one of
	// messages, messageWidth what it must leave of that.
	whereWidth   = 44
	messageWidth = 36
	// columnsRoom is what messages need beside the labels; with less, the two are
	// one column.
	columnsRoom = 30
)

func (p *page) claims(e *explain.Explanation) {
	for i := range e.Claims {
		claim := &e.Claims[i]
		if len(e.Claims) == 1 && claim.Allocation == nil && len(claim.Requests) == 0 && len(claim.Constraints) == 0 {
			// There is nothing below the title, and the headline has said the rest.
			continue
		}
		p.blank()
		if len(e.Claims) > 1 || e.Target.Kind != "ResourceClaim" {
			p.text(0, strong, claimTitle(claim))
		}
		if claim.Allocation != nil {
			p.allocation(claim.Allocation)
		}
		inTitle := len(claim.Requests) == 1
		for j := range claim.Requests {
			r := &claim.Requests[j]
			if j > 0 {
				p.blank()
			}
			title := requestTitle(r)
			if inTitle {
				for _, constraint := range claim.Constraints {
					title += ", all with " + constraint
				}
			}
			p.text(0, strong, title)
			p.funnel(r, obstacleOf(e, claim, r))
		}
		if !inTitle {
			for _, constraint := range claim.Constraints {
				p.text(0, plain, "Constraint: "+constraint)
			}
		}
	}
}

func claimTitle(claim *explain.ClaimExplanation) string {
	if claim.Name == "" {
		switch {
		case claim.ExtendedResources:
			return "ResourceClaim that the scheduler makes for the extended resources of the pod"
		case claim.Template == "" && claim.PodClaim != "":
			return fmt.Sprintf("Claim %s of the pod", claim.PodClaim)
		}
	}
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
	title := "Request " + r.Name
	if r.ExtendedResource != "" {
		title += ", for " + r.ExtendedResource
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

// funnel draws how the devices of all pools become those that are left. The
// obstacle is why these do not help, if they do not.
func (p *page) funnel(r *explain.RequestExplanation, why obstacle) {
	first, opening, rows := p.opening(r)
	rows, rest := p.someReasons(rows)
	numbers := []string{first, strconv.Itoa(r.Eligible), "----"}
	var labels, messages, places []string
	for i := range rows {
		labels = append(labels, rows[i].Label)
		messages = append(messages, rejectionText(r, &rows[i]))
		places = append(places, p.place(&rows[i]))
		numbers = append(numbers, "-"+strconv.Itoa(rows[i].Count))
	}
	number := max(widest(12, numbers...), 5)
	label := widest(labelWidth, labels...)
	margin := number + label + 2*columnGap
	message, beside := p.columns(margin, messages, places)

	p.row(0, cell{text: first, width: number, right: true}, cell{text: opening})
	if len(rows) == 0 && first == "0" {
		// Nothing came in, so nothing is left.
		return
	}
	for i := range rows {
		cells := []cell{{text: "-" + strconv.Itoa(rows[i].Count), width: number, right: true, mark: bad}}
		said := messages[i]
		if !beside && places[i] != "" {
			said = strings.TrimSpace(bound(said) + " (" + places[i] + ")")
		}
		switch {
		case p.width-margin < columnsRoom:
			cells = append(cells, cell{text: joined(rows[i].Label, said)})
		case beside:
			cells = append(cells, cell{text: rows[i].Label, width: label}, cell{text: said, width: message}, cell{text: places[i], mark: faint})
		default:
			cells = append(cells, cell{text: rows[i].Label, width: label}, cell{text: said})
		}
		p.row(0, cells...)
		if p.opts.Wide {
			p.evidence(number+columnGap, rows[i].Evidence)
			p.deviceList(number+columnGap, rows[i].Devices)
		}
	}
	if len(rest) > 0 {
		p.text(number+columnGap, faint, moreReasons(rest))
	}
	p.row(0, cell{text: "----", width: number, right: true})
	m := bad
	if enough(r) && why.message == "" {
		m = good
	}
	p.row(0, cell{text: numbers[1], width: number, right: true, mark: m}, cell{text: p.leftText(r, why)})
	if p.opts.Wide {
		p.deviceList(number+columnGap, r.EligibleDevices)
		p.selectors(2, r.Selectors)
	}
}

// opening says how many devices there are, and which rejections are to follow.
// Those of other classes are only counted, unless somebody wants all of it.
func (p *page) opening(r *explain.RequestExplanation) (number, said string, rows []explain.Rejection) {
	rows = r.Rejected
	if p.opts.Wide || len(rows) == 0 || rows[0].Code != explain.ClassSelectorFalse {
		return strconv.Itoa(r.Considered), consideredText(r), rows
	}
	others := &rows[0]
	left := r.Considered - others.Count
	what := fmt.Sprintf("%d in %s, %d of other classes", r.Considered, count(r.Pools, "pool"), others.Count)
	if left == 0 {
		what = fmt.Sprintf("%d in %s: %s", r.Considered, count(r.Pools, "pool"), rejectionText(r, others))
	}
	return strconv.Itoa(left), fmt.Sprintf("%s of class %s (%s)", devicesWord(left), r.DeviceClass, what), rows[1:]
}

// rejectionText is the message of a rejection without what stands beside it: its
// label, and the class that the title names.
func rejectionText(r *explain.RequestExplanation, rejection *explain.Rejection) string {
	said := rejection.Message
	if rejection.Code == explain.ClassSelectorFalse {
		said = strings.TrimPrefix(said, "not of class "+r.DeviceClass+": ")
	}
	if said == rejection.Label {
		return ""
	}
	return strings.TrimPrefix(said, rejection.Label+": ")
}

// joined puts a label and its message into one text.
func joined(label, message string) string {
	if label == "" || message == "" {
		return label + message
	}
	return label + ": " + message
}

// columns divides the room beside the labels among messages and the places that
// they are about. It returns the width for the messages, or false if the places
// do not fit beside them.
func (p *page) columns(margin int, messages, places []string) (message int, beside bool) {
	if p.width == unlimited {
		return widest(alignWidth, messages...), widest(1, places...) > 0
	}
	room := p.width - margin
	message, place := widest(room, messages...), widest(room, places...)
	if message+columnGap+place <= room {
		return message, place > 0
	}
	message = room - columnGap - place
	return message, place <= whereWidth && message >= messageWidth
}

// evidence lists the proof of a rejection.
func (p *page) evidence(indent int, facts []explain.Evidence) {
	if len(facts) == 0 {
		return
	}
	p.text(indent, faint, "Evidence")
	for _, fact := range facts {
		p.paragraph(p.full-indent-2, indent+2, faint, Escape(bound(evidenceText(fact))))
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
	return devicesWord(r.Considered) + " in " + count(r.Pools, "pool")
}

func devicesWord(n int) string {
	if n == 1 {
		return "device"
	}
	return "devices"
}

// enough is true if one node alone has as many eligible devices as needed.
func enough(r *explain.RequestExplanation) bool {
	return r.Eligible > 0 && int64(r.MostOnOneNode) >= max(r.Needs, 1)
}

// leftText says where the devices are that are left. The obstacle is why it does
// not fit on the best node although that has enough of them.
func (p *page) leftText(r *explain.RequestExplanation, why obstacle) string {
	if p.oneNode {
		return leftOnNode(r, why)
	}
	switch {
	case r.Eligible == 0:
		return "left"
	case r.EligibleNodes == 0:
		return "left, but no node can reach them"
	}
	node := ""
	if r.BestNode != "" {
		node = " (" + r.BestNode + ")"
	}
	said := "left on " + count(r.EligibleNodes, "node")
	switch {
	case r.EligibleNodes == 1 && (enough(r) || why.limit):
		said += node
	case r.EligibleNodes == 1:
		said += fmt.Sprintf("%s, but %d needed", node, max(r.Needs, 1))
	case !enough(r) && !why.limit:
		said += fmt.Sprintf(", but never %d on one: the most is %d%s", max(r.Needs, 1), r.MostOnOneNode, node)
	case why.message != "" && why.node == r.BestNode:
		said += fmt.Sprintf(", the most on %s: %d", r.BestNode, r.MostOnOneNode)
	case why.message != "":
		said += ", enough on " + why.node
	default:
		said += fmt.Sprintf(": the most is %d%s", r.MostOnOneNode, node)
	}
	return said + why.String()
}

// obstacle is why a request finds nothing on a node, although that has as many
// eligible devices as it needs. It is empty if that is not so, or not because of
// this request.
type obstacle struct {
	node, message string
	// limit is true if the claim asks for more than it can have anywhere.
	limit bool
}

// String continues a sentence about the devices.
func (o obstacle) String() string {
	if o.message == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(o.message, "enough devices, "); ok {
		return ", " + rest
	}
	return "; " + o.message
}

// obstacleOf is that of the best node for the request, or else that of the nodes
// where the least is in the way.
func obstacleOf(e *explain.Explanation, claim *explain.ClaimExplanation, r *explain.RequestExplanation) obstacle {
	if len(e.Nodes) == 0 {
		return obstacle{}
	}
	group := &e.Nodes[0]
	if group.Code == explain.ClaimLimitExceeded {
		return obstacle{limit: true}
	}
	if e.Verdict != explain.DoesNotFit || !enough(r) {
		return obstacle{}
	}
	request, alternative, _ := strings.Cut(r.Name, "/")
	about, ofOne := strings.CutPrefix(group.Message, "request ")
	o := obstacle{node: r.BestNode, message: group.Message}
	if !slices.Contains(group.Names, r.BestNode) {
		o.node = group.Names[0]
	}
	switch {
	case group.Verdict != explain.DoesNotFit, ofOne && !strings.HasPrefix(about, request+" "):
		return obstacle{}
	case o.node != r.BestNode && (ofOne || alternative != ""):
		// There may be too few on these nodes.
		return obstacle{}
	}
	switch group.Code {
	case explain.ConstraintUnsatisfiable:
		if len(claim.Constraints) == 0 {
			return obstacle{}
		}
	case explain.RequestsCompete, explain.CountersExhausted, explain.CompatibilityGroupConflict:
	default:
		return obstacle{}
	}
	return o
}
