// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"context"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// maxHints is how many hints an explanation has.
const maxHints = 5

// Add looks for causes outside of the allocation, the most telling first.
// The rest of the explanation is finished.
func Add(q *funnel.Question, target api.Target, out *api.Explanation) {
	h := &finder{q, target, out}
	h.unusedClaims()
	if q.Pod == nil || lifecycle.Waits(q.Pod) {
		h.queueHint()
		h.droppedHints()
		h.driverHints()
		h.poolHints()
		h.taintRuleHints()
		h.attributeHints()
		h.counterHint()
		h.mixedResourceHints()
		h.preemptionHint()
		h.autoscalerHint()
	}
	h.pluginHint()
	h.movedHint()
	out.Hints = out.Hints[:min(len(out.Hints), maxHints)]
}

// AddOfConfig names configuration of claims that drivers ignore.
func AddOfConfig(ctx context.Context, q *funnel.Question, out *api.Explanation) {
	h := &finder{Question: q, out: out}
	h.configHints(ctx)
}
