// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// nodeVerdict puts the verdict for one node into the words of the headline. It
// is empty where the node makes no difference to these.
func nodeVerdict(e *explain.Explanation) (string, mark) {
	switch e.Verdict {
	case explain.Allocated:
		return "is allocated, and can use node " + e.Node.Name, good
	case explain.Fits:
		return "fits on node " + e.Node.Name, good
	case explain.DoesNotFit:
		return "does not fit on node " + e.Node.Name, bad
	case explain.Undetermined:
		return "cannot be decided for node " + e.Node.Name, unsure
	case explain.Blocked, explain.Error:
	}
	return "", plain
}

// misfits lists what keeps the pod away from the one node.
func (p *page) misfits(e *explain.Explanation) {
	if e.Node == nil || len(e.Node.Misfits) == 0 {
		return
	}
	p.blank()
	p.text(0, strong, "What rules the node out, whatever its devices")
	for i := range e.Node.Misfits {
		misfit := &e.Node.Misfits[i]
		p.row(2, cell{text: "-", width: 1}, cell{text: misfit.Message})
		if p.opts.Wide {
			p.evidence(5, []explain.Evidence{misfit.Evidence})
		}
	}
}

// pools lists the pools that the one node can reach, with their state.
func (p *page) pools(e *explain.Explanation) {
	if e.Node == nil || e.Node.Pools == nil {
		return
	}
	p.blank()
	p.text(0, strong, "Pools that the node can reach")
	names, sizes := make([]string, len(e.Node.Pools)), make([]string, len(e.Node.Pools))
	for i := range e.Node.Pools {
		pool := &e.Node.Pools[i]
		names[i] = pool.Driver + "/" + pool.Name
		sizes[i] = count(pool.Devices, "device")
	}
	name, size := widest(namesWidth, names...), widest(12, sizes...)
	for i := range e.Node.Pools {
		pool := &e.Node.Pools[i]
		state, m := "usable", good
		switch {
		case !pool.Usable:
			state, m = "not used: "+pool.Message, bad
		case pool.Code != "":
			state, m = "used only in part: "+pool.Message, unsure
		}
		p.row(2, cell{text: names[i], width: name}, cell{text: sizes[i], width: size}, cell{text: state, mark: m})
		if p.opts.Wide && pool.Evidence != nil {
			p.evidence(4, []explain.Evidence{*pool.Evidence})
		}
	}
}

// shownReasons is how many reasons one request shows for the devices of a node.
const shownReasons = 30

// someReasons leaves out what would flood the page.
func (p *page) someReasons(rows []explain.Rejection) (shown, rest []explain.Rejection) {
	if !p.oneNode || p.opts.Wide || len(rows) <= shownReasons+1 {
		return rows, nil
	}
	return rows[:shownReasons], rows[shownReasons:]
}

// moreReasons counts what was left out.
func moreReasons(rest []explain.Rejection) string {
	devices := 0
	for i := range rest {
		devices += rest[i].Count
	}
	return fmt.Sprintf("… and %s for %s: -o wide lists them", count(len(rest), "more reason"), count(devices, "device"))
}

// place says which devices a rejection is about, or where they are.
func (p *page) place(rejection *explain.Rejection) string {
	if !p.oneNode {
		return rejection.Where
	}
	return deviceNames(rejection.Devices)
}

// deviceNames joins the names of devices, with their pools if these differ.
func deviceNames(ids []string) string {
	var names []string
	pools := map[string]bool{}
	for _, id := range ids {
		driver, pool, device := splitDevice(id)
		pools[driver+"/"+pool] = true
		names = append(names, device)
	}
	if len(pools) <= 1 {
		return strings.Join(collapse(names), ", ")
	}
	names = nil
	for _, group := range byDriver(ids) {
		for _, line := range group.lines {
			names = append(names, strings.Join(line, ", "))
		}
	}
	return strings.Join(names, "; ")
}

// leftOnNode says how many devices of the one node are left, and which.
func leftOnNode(r *explain.RequestExplanation, why obstacle) string {
	said := "left"
	if r.Eligible > 0 {
		said += ": " + deviceNames(r.EligibleDevices)
	}
	switch {
	case why.message != "":
		return said + "; " + why.message
	case !enough(r) && !why.limit && r.Eligible > 0:
		return fmt.Sprintf("left, but %d needed%s", max(r.Needs, 1), strings.TrimPrefix(said, "left"))
	default:
		return said
	}
}
