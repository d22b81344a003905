// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// gangRemedies has the remedies of the PodGroups of pods that were asked about.
type gangRemedies struct {
	cluster *cluster.Cluster

	// known has the answers about PodGroups by namespace and name.
	known map[[2]string]*api.Explanation
}

// find gives a pod of a gang that does not fit as a whole the remedies of its PodGroup:
// what helps this one alone has none of them scheduled.
func (g *gangRemedies) find(ctx context.Context, t *target.Target, out *api.Explanation) error {
	if t.Object.Kind != api.KindPod || t.Hypothetical || t.Pod == nil || out.SameAs.Kind != "" ||
		(out.Code != api.GangIncomplete || out.Stage != api.StageAllocation) && out.Verdict != api.DoesNotFit {
		return nil
	}
	group := g.cluster.Snapshot.PodGroup(t.Object.Namespace, target.GroupOf(t.Pod))
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil {
		return nil
	}
	key := [2]string{group.Namespace, group.Name}
	if g.known[key] == nil {
		answers, err := ExplainEach(ctx, g.cluster, []target.Options{{Object: api.RefTo(api.KindPodGroup, group), AllRemedies: t.AllRemedies}})
		if err != nil {
			return err
		}
		if answers[0].Err != nil {
			return nil //nolint:nilerr // it only means that no more is found
		}
		g.known[key] = answers[0].Explanation
	}
	whole := g.known[key]
	if len(whole.Remedies) == 0 {
		return nil
	}
	out.Remedies, out.MoreRemedies = slices.Clone(whole.Remedies), whole.MoreRemedies
	out.NextSteps = withoutGangStep(out.NextSteps, group.Name)
	return nil
}
