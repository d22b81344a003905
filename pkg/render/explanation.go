// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Explanation draws the answer to "why": the verdict and the facts about the target as a
// whole, then the funnel of each request, the nodes, the conflict and the remedies, or the
// actual or possible allocation. The only errors are from w.
func Explanation(w io.Writer, e *api.Explanation, opts Options) error {
	p := NewPage(opts)
	p.oneNode = e.Node != nil
	if e.Device != nil {
		writeDevice(p, e)
		writeAssumptions(p, e)
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
	writeAssumptions(p, e)
	writeNextSteps(p, e)
	writeAllocator(p, e)
	return p.Print(w)
}

// Print writes the page.
func (p *Page) Print(w io.Writer) error {
	if _, err := w.Write(p.Buf.Bytes()); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func writePlacement(p *Page, e *api.Explanation) {
	if e.Placement == nil {
		return
	}
	p.Heading("Devices that the allocator picks on " + e.Placement.Node)
	for i := range e.Placement.Claims {
		claim := &e.Placement.Claims[i]
		indent := 2
		if len(e.Placement.Claims) > 1 {
			p.Text(indent, Plain, claimTitle(&api.ClaimExplanation{
				Namespace: claim.Namespace, Name: claim.Name, PodClaim: claim.PodClaim, ExtendedResources: claim.Name == "" && claim.PodClaim == "",
			}))
			indent += 2
		}
		writeDevices(p, indent, claim.Devices)
	}
}

func writeHints(p *Page, e *api.Explanation) {
	if len(e.Hints) == 0 {
		return
	}
	p.Heading("Hints")
	for i := range e.Hints {
		p.Items(e.Hints[i].Text)
	}
}

func writeAssumptions(p *Page, e *api.Explanation) {
	if len(e.Assumptions) == 0 {
		return
	}
	p.Heading("Assumptions (not verified)")
	p.Items(e.Assumptions...)
}

// writeAllocator names the allocator that answered, for people who doubt the answer.
func writeAllocator(p *Page, e *api.Explanation) {
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
	p.Text(2, Plain, fmt.Sprintf("k8s.io/dynamic-resource-allocation %s, implementation %s, cluster version %s",
		e.Allocator.Library, e.Allocator.Channel, cluster))
	p.Text(2, Plain, fmt.Sprintf("Enabled features (source: %s): %s", e.Allocator.FeatureSource, features))
}
