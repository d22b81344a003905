// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/nodemap"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Summary makes the model of the overview of facts and of what else is known by then.
type Summary struct {
	Look      *widget.Look
	Namespace string
	Fixed     bool
	Started   time.Time
	Reasons   *live.Reasons
	Diagnosis *live.Diagnosis
	// Hours are the histories, by name.
	Hours  map[string][]float64
	Events []live.Event
	// Nodes are those to be shown as signs, in groups and in an order; nil for none.
	Nodes []*inventory.Node
	By    nodemap.Grouping
	Order nodemap.Order
}

// in reports whether something of a namespace is shown.
func (s *Summary) in(namespace string) bool { return s.Namespace == "" || namespace == s.Namespace }

// none is what stands where there is nothing: text, or that it is not known because a
// resource could not be read.
func (f *Facts) none(text string, resources ...string) string {
	for _, resource := range resources {
		if gap := f.From.Cluster.Snapshot.Gap(resource); gap != nil {
			return "not known: " + gap.Reason
		}
	}
	return text
}
