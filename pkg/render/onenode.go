// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// writeMisfits lists what keeps the pod away from the one node.
func writeMisfits(p *Page, e *api.Explanation) {
	if e.Node == nil || len(e.Node.Misfits) == 0 {
		return
	}
	p.Heading("Node " + e.Node.Name + " is not suitable for the pod")
	for i := range e.Node.Misfits {
		misfit := &e.Node.Misfits[i]
		p.Items(misfit.Message)
		if p.Opts.Wide {
			writeEvidence(p, 5, []api.Evidence{misfit.Evidence})
		}
	}
}

// writePools lists the pools that the one node can reach, with their state.
func writePools(p *Page, e *api.Explanation) {
	if e.Node == nil || e.Node.Pools == nil {
		return
	}
	p.Heading("Pools reachable from " + e.Node.Name)
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
			writeEvidence(p, 4, []api.Evidence{*pool.Evidence})
		}
	}
}
