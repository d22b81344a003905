// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"io"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
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

// writeWhyHere says why a pod has its node and its devices.
func writeWhyHere(p *page, h *api.WhyHere) {
	if h == nil || len(h.Nodes) == 0 || h.NodeCount == 1 && h.FitsHere && len(h.Alternatives)+len(h.Smaller) == 0 {
		return
	}
	p.Heading("Why here (decided again for the cluster as it is now)")
	switch {
	case h.FitsHere && h.NodeCount == 1:
	case !h.FitsHere:
		p.Items(fmt.Sprintf("It would not fit on %s again: see the nodes.", h.Node))
	case fitting(h.Nodes) == 1:
		p.Items(fmt.Sprintf("%s is the only one of %s where it fits.", h.Node, english.Count(h.NodeCount, "node")))
	default:
		p.Items(fmt.Sprintf("%s is one of %s where it fits. Which of them is taken depends on the scores of all plugins of the scheduler, which are not modeled.",
			h.Node, english.Count(fitting(h.Nodes), "node")))
	}
	if len(h.NotEvaluated) > 0 {
		p.Items("Not evaluated: " + english.JoinAnd(h.NotEvaluated) + ".")
	}
	for i := range h.Alternatives {
		p.Items(alternativeText(&h.Alternatives[i]))
	}
	for i := range h.Smaller {
		p.Items(smallerText(&h.Smaller[i]))
	}
	writeNodeList(p, "Nodes for the pod now", h.Nodes)
}

// alternativeText says which alternative was chosen, and why none before it.
func alternativeText(a *api.ChosenAlternative) string {
	text := fmt.Sprintf("Claim %s has alternative %s, %d of %d.", a.Claim, a.Chosen, a.Position, a.Count)
	for _, earlier := range a.Earlier {
		if earlier.FitsNow {
			text += fmt.Sprintf(" %s is available now, but was not when the claim was allocated.", earlier.Name)
		} else {
			text += fmt.Sprintf(" %s: %s.", earlier.Name, earlier.Message)
		}
	}
	return text
}

// smallerText says which device would do in the place of a larger one.
func smallerText(s *api.SmallerDevice) string {
	var differences []string
	for _, c := range s.Capacities {
		differences = append(differences, fmt.Sprintf("%s %s instead of %s", c.Name, c.Instead, c.Device))
	}
	return fmt.Sprintf("Request %s of claim %s has %s, although the smaller %s would do: %s. The allocator takes the first device that fits, in the order in which the driver lists them.",
		s.Request, s.Claim, s.Device, s.Instead, english.JoinAnd(differences))
}
