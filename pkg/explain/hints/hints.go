// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"context"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Most is how many hints an explanation has, apart from hints about configuration.
const Most = 5

// Find looks for causes outside of the allocation. The explanation is finished but
// for its summary, and is not changed.
func Find(q *eligibility.Question, target api.ObjectRef, out *api.Explanation) Found {
	h := &finder{Question: q, target: target, out: out}
	h.unusedClaims()
	if q.Pod == nil || snapshot.Waits(q.Pod) {
		h.droppedHints()
		h.driverHints()
		h.poolHints()
		h.taintRuleHints()
		h.attributeHints()
		h.counterHint()
		h.mixedResourceHints()
		h.defaultRequestHint()
		h.preemptionHint()
		h.autoscalerHint()
		h.evictedHint()
	}
	h.pluginHint()
	h.movedHint()
	return h.found
}

// OfConfig names configuration of claims that drivers ignore.
func OfConfig(ctx context.Context, q *eligibility.Question, out *api.Explanation) []api.Hint {
	h := &finder{Question: q, out: out}
	h.configHints(ctx)
	return h.found.Hints
}
