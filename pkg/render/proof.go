// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// proof draws why nothing fits, and what would make it fit.
func (p *page) proof(e *explain.Explanation) {
	if c := e.Conflict; c != nil && len(c.Facts) > 0 {
		p.blank()
		if len(c.Facts) == 1 {
			p.text(0, strong, fmt.Sprintf("One fact stands in the way on %s", c.Node))
		} else {
			p.text(0, strong, fmt.Sprintf("These cannot hold together on %s; without any one of them it would fit", c.Node))
		}
		for _, f := range c.Facts {
			p.row(2, cell{text: "-", width: 1}, cell{text: f.Text})
		}
	}
	if len(e.Remedies) == 0 {
		return
	}
	p.blank()
	p.text(0, strong, "What would make it fit (each one checked with the scheduler's allocator)")
	width := len("admin")
	for i := range e.Remedies {
		r := &e.Remedies[i]
		p.row(2, cell{text: actor(r.Actor), width: width, mark: strong}, cell{text: r.Change + " (" + where(r) + ")"})
		if r.Patch != "" {
			// To be copied, so it is not wrapped.
			p.paragraph(unlimited, 2+width+columnGap, plain, Escape(r.Patch))
		}
	}
}

// where says what a remedy leads to.
func where(r *explain.Remedy) string {
	devices := make([]string, 0, len(r.Devices))
	for i := range r.Devices {
		devices = append(devices, r.Devices[i].Device)
	}
	const most = 4
	if len(devices) > most {
		devices = append(devices[:most], fmt.Sprintf("… %d in all", len(r.Devices)))
	}
	return fmt.Sprintf("%s: %s", r.Node, strings.Join(devices, ", "))
}
