// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// SearchSteps is how many steps the allocator's search may take for a what-if
// cluster where counting does not know the answer: about a tenth of a second.
const SearchSteps = 1_000_000

// confirmSteps is how many it may take where counting says that the claims fit:
// half of it the first time that it finds nothing, and half as many each time.
const confirmSteps = 400_000

// Confirmer asks about what-if clusters, and gives the allocator the fewer steps
// the more often they were not enough.
type Confirmer struct {
	// unconfirmed is how often the allocator did not end, though counting says
	// that claims fit.
	unconfirmed int
}

// Fits reports whether claims fit on a node of a what-if cluster. Counting may
// say that they do not; that they do is for the allocator to say, which may also
// fail, unless it takes too many steps. Where neither knows, it is an error.
func (c *Confirmer) Fits(ctx context.Context, q *eligibility.Question, facts *cluster.Cluster, node *corev1.Node, claims []*resourceapi.ResourceClaim) (bool, error) {
	steps := int64(SearchSteps)
	counted, known := FitsByCounting(ctx, q, facts, node, claims)
	if known {
		if !counted {
			return false, nil
		}
		steps = (confirmSteps / 2) >> c.unconfirmed
	}
	limited, budget := allocator.WithBudget(ctx, steps)
	defer budget.End()
	switch verdict := allocator.Of(facts).Check(limited, node, claims); verdict.Outcome {
	case allocator.Fits:
		return true, nil
	case allocator.DoesNotFit, allocator.NodeError, allocator.Failed:
		return false, nil
	default:
		if known && ctx.Err() == nil {
			c.unconfirmed++
			return true, nil
		}
		return false, fmt.Errorf("check node %s: %w", node.Name, verdict.Err)
	}
}

// CheckUnless asks the allocator about those nodes that are not hard. The claims
// do not fit on the others, whose indices it returns.
func CheckUnless(ctx context.Context, q *eligibility.Question, nodes []*corev1.Node, isHard func(context.Context, *corev1.Node) bool) (verdicts []allocator.NodeVerdict, hard []int) {
	verdicts = make([]allocator.NodeVerdict, len(nodes))
	var easy []int
	var asked []*corev1.Node
	for i, node := range nodes {
		if isHard(ctx, node) {
			verdicts[i] = allocator.NodeVerdict{Outcome: allocator.DoesNotFit}
			hard = append(hard, i)
			continue
		}
		easy, asked = append(easy, i), append(asked, node)
	}
	for at, verdict := range allocator.Of(q.Cluster).CheckAll(ctx, asked, func(node *corev1.Node) ([]*resourceapi.ResourceClaim, error) { return q.ClaimsFor(node) }) {
		verdicts[easy[at]] = verdict
	}
	return verdicts, hard
}
