// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// misfits lists what keeps the pod away from the one node.
func (p *Page) misfits(e *api.Explanation) {
	if e.Node == nil || len(e.Node.Misfits) == 0 {
		return
	}
	p.heading("Node " + e.Node.Name + " is not suitable for the pod")
	for i := range e.Node.Misfits {
		misfit := &e.Node.Misfits[i]
		p.items(misfit.Message)
		if p.Opts.Wide {
			p.evidence(5, []api.Evidence{misfit.Evidence})
		}
	}
}

// pools lists the pools that the one node can reach, with their state.
func (p *Page) pools(e *api.Explanation) {
	if e.Node == nil || e.Node.Pools == nil {
		return
	}
	p.heading("Pools reachable from " + e.Node.Name)
	names, sizes := make([]string, len(e.Node.Pools)), make([]string, len(e.Node.Pools))
	for i := range e.Node.Pools {
		pool := &e.Node.Pools[i]
		names[i] = pool.Driver + "/" + pool.Name
		sizes[i] = english.Count(pool.Devices, "device")
	}
	name, size := Widest(namesWidth, names...), Widest(12, sizes...)
	for i := range e.Node.Pools {
		pool := &e.Node.Pools[i]
		state, m := "usable", Good
		switch {
		case !pool.Usable:
			state, m = "not used: "+pool.Message, Bad
		case pool.Code != "":
			state, m = "partly used: "+pool.Message, Unsure
		}
		p.Row(2, Cell{Text: names[i], Width: name}, Cell{Text: sizes[i], Width: size}, Cell{Text: state, Mark: m})
		if p.Opts.Wide && pool.Evidence != nil {
			p.evidence(4, []api.Evidence{*pool.Evidence})
		}
	}
}

// shownReasons is how many reasons one request shows for the devices of a node.
const shownReasons = 30

// someReasons leaves out what would flood the page.
func (p *Page) someReasons(rows []api.Rejection) (shown, rest []api.Rejection) {
	if !p.oneNode || p.Opts.Wide || len(rows) <= shownReasons+1 {
		return rows, nil
	}
	return rows[:shownReasons], rows[shownReasons:]
}

// moreReasons counts what was left out.
func moreReasons(rest []api.Rejection) string {
	devices := 0
	for i := range rest {
		devices += rest[i].Count
	}
	return fmt.Sprintf("and %s for %s: -o wide lists them", english.Count(len(rest), "more reason"), english.Count(devices, "device"))
}

// place says which devices a rejection is about, or where they are.
func (p *Page) place(rejection *api.Rejection) string {
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

// availableOnNode says how many devices of the one node are available, and
// which.
func availableOnNode(r *api.RequestExplanation) string {
	if r.Eligible == 0 {
		return "available"
	}
	said := "available: " + deviceNames(r.EligibleDevices)
	if !enough(r) {
		said += fmt.Sprintf("; %d needed", max(r.Needs, 1))
	}
	return said
}
