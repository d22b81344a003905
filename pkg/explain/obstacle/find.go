// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package obstacle

import (
	"context"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Find finds what is in the way of the pod of a question, in the order in which the
// pod meets it: its creation, that of its claims, the scheduling queue, the
// filters. What could not be read is not evaluated. The verdict is that about
// devices.
func Find(ctx context.Context, q *funnel.Question, t *target.Target, verdict api.Verdict, together DecideGang) ([]Obstacle, []Unevaluated, error) {
	f := &finder{Question: q, target: t, verdict: verdict, together: together}
	found := f.refusals()
	if q.Pod == nil || !snapshot.Waits(q.Pod) {
		return found, f.unevaluated, nil
	}
	gang, err := f.gangObstacles(ctx, q.Pod)
	if err != nil {
		return nil, nil, err
	}
	return slices.Concat(found, gang, f.volumeObstacles(q.Pod)), f.unevaluated, nil
}
