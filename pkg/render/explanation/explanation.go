// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"io"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Full draws the whole answer to "why": the verdict and the facts about the target as a
// whole, then the funnel of each request, the nodes, the conflict and the remedies, or the
// actual or possible allocation. The only errors are from w.
func Full(w io.Writer, e *api.Explanation, opts render.Options) error {
	p := newPage(opts)
	p.oneNode = e.Node != nil
	if e.Device != nil {
		writeDevice(p, e)
		p.Assumptions(e.Assumptions)
		writeAllocator(p, e)
		return p.Print(w)
	}
	writeHead(p, e)
	writeMisfits(p, e)
	writeMembers(p, e)
	writeClaims(p, e)
	writePools(p, e)
	writeNodes(p, e)
	writeWhyHere(p, e.WhyHere)
	writeConflict(p, e.Conflict)
	writeRemedies(p, e)
	writePlacement(p, e)
	writeHints(p, e)
	p.Assumptions(e.Assumptions)
	writeNextSteps(p, e)
	writeAllocator(p, e)
	return p.Print(w)
}

func writePlacement(p *page, e *api.Explanation) {
	if e.Placement == nil {
		return
	}
	p.Heading("Devices that the allocator picks on " + e.Placement.Node)
	for i := range e.Placement.Claims {
		claim := &e.Placement.Claims[i]
		indent := 2
		if len(e.Placement.Claims) > 1 {
			p.Text(indent, render.Plain, claimTitle(&api.ClaimExplanation{
				Namespace: claim.Namespace, Name: claim.Name, PodClaim: claim.PodClaim, ExtendedResources: claim.Name == "" && claim.PodClaim == "",
			}))
			indent += 2
		}
		writeDevices(p, indent, claim.Devices)
	}
}

func writeHints(p *page, e *api.Explanation) {
	if len(e.Hints) == 0 {
		return
	}
	p.Heading("Hints")
	for i := range e.Hints {
		p.Items(e.Hints[i].Text)
	}
}

// writeAllocator names the allocator that answered, for people who doubt the answer.
func writeAllocator(p *page, e *api.Explanation) {
	if !p.Opts.Wide {
		return
	}
	cluster := e.Allocator.Cluster
	if cluster == "" {
		cluster = "unknown"
	}
	features := "none"
	if len(e.Allocator.Features) > 0 {
		features = strings.Join(e.Allocator.Features, ", ")
	}
	p.Heading("Allocator")
	p.Text(2, render.Plain, fmt.Sprintf("k8s.io/dynamic-resource-allocation %s, implementation %s, cluster version %s",
		e.Allocator.Library, e.Allocator.Channel, cluster))
	p.Text(2, render.Plain, fmt.Sprintf("Enabled features (source: %s): %s", e.Allocator.FeatureSource, features))
}
