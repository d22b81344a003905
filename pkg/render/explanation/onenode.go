// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writeMisfits lists what keeps the pod away from the one node.
func writeMisfits(p *page, e *api.Explanation) {
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
func writePools(p *page, e *api.Explanation) {
	if e.Node == nil || e.Node.Pools == nil {
		return
	}
	p.Heading("Pools reachable from " + e.Node.Name)
	rows := make([][]render.Cell, 0, len(e.Node.Pools))
	for i := range e.Node.Pools {
		pool := &e.Node.Pools[i]
		state, m := "usable", render.Good
		switch {
		case !pool.Usable:
			state, m = "not used: "+pool.Message, render.Bad
		case pool.Code != "":
			state, m = "partly used: "+pool.Message, render.Unsure
		}
		rows = append(rows, []render.Cell{{Text: pool.Driver + "/" + pool.Name}, {Text: english.Count(pool.Devices, "device")}, {Text: state, Mark: m}})
	}
	render.Align(rows, render.NamesWidth, 12)
	for i, row := range rows {
		p.Row(2, row...)
		if evidence := e.Node.Pools[i].Evidence; p.Opts.Wide && evidence != nil {
			writeEvidence(p, 4, []api.Evidence{*evidence})
		}
	}
}
