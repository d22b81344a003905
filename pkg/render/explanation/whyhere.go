// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

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
