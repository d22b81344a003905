// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// trace adds to each request what its selectors do.
func (x *builder) trace(ctx context.Context) {
	for i := range x.Claims {
		explained := &x.out.Claims[x.Claims[i].Index]
		at := 0
		for _, alternatives := range x.Claims[i].Funnels {
			for _, f := range alternatives {
				explained.Requests[at].Selectors = f.Traces(ctx)
				x.out.NextSteps = append(x.out.NextSteps, costSteps(x.Question, &x.Claims[i], f.Request, explained.Requests[at].Selectors)...)
				at++
			}
		}
	}
}

// costSteps warn users who create a claim that the API server will not take it.
func costSteps(q *eligibility.Question, c *eligibility.Claim, r *cluster.Request, traces []api.SelectorTrace) (steps []api.NextStep) {
	if c.Claim.UID != "" && !q.PodClaims[c.Index].Generated {
		return nil
	}
	for i := range traces {
		trace := &traces[i]
		if trace.Source != eligibility.SourceRequest || trace.Cost <= trace.CostLimit {
			continue
		}
		steps = append(steps, api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf(
			"make the selector of request %s at %s cheaper: %s", r.Name, trace.Path, eligibility.CostWarning(trace))})
	}
	return steps
}
