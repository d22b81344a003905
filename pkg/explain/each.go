// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// Answer is the answer or the error for one of several targets. One of the two is nil.
type Answer struct {
	Explanation *api.Explanation
	Err         error
}

// ExplainEach answers for several targets of one cluster, in their order. Pods
// that wait are decided one after another, as the scheduler does: a pod that
// fits gets its node and its devices before the next one is looked at. The order
// is the order of the scheduling queue: by priority, then by age (the plugin
// PrioritySort). Pods of the cluster that are no targets take part.
//
// Equal pods share what is the same for all of them, see [Explanation.SameAs]: a
// thousand pods of one Job take little longer than one. The error is from ctx.
func ExplainEach(ctx context.Context, c *cluster.Cluster, targets []target.Options) ([]Answer, error) {
	return answerEach(ctx, c, targets, verdict.Options{}, withAdvice)
}

// ExplainEquivalent is like [ExplainEach], for overviews: pods also share an answer if they
// differ in the names of namespaces, owners and claims, so that the remedies can name
// another pod's.
func ExplainEquivalent(ctx context.Context, c *cluster.Cluster, targets []target.Options) ([]Answer, error) {
	return answerEach(ctx, c, targets, verdict.Options{Shares: true}, withAdvice)
}

// ReasonsOfEach is like [ExplainEquivalent], for some of the waiting pods, without advice.
func ReasonsOfEach(ctx context.Context, c *cluster.Cluster, targets []target.Options, waiting []*corev1.Pod) ([]Answer, error) {
	return answerEach(ctx, c, targets, verdict.Options{Shares: true, Waiting: waiting}, reasonsOnly)
}

func answerEach(ctx context.Context, c *cluster.Cluster, targets []target.Options, opts verdict.Options, most depth) ([]Answer, error) {
	answers := make([]Answer, len(targets))
	found := make([]*target.Target, len(targets))
	q := verdict.NewQueue(c, opts)
	for i, opts := range targets {
		var err error
		found[i], err = target.Find(c, opts)
		switch {
		case err != nil:
			answers[i].Err = err
		case !found[i].Queued() && !found[i].Counted():
			answers[i].Explanation, answers[i].Err = ExplainWith(ctx, c, opts)
			found[i] = nil
		default:
			q.Add(found[i])
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("explain: %w", err)
		}
	}
	explained, err := explainQueue(ctx, c, q, most)
	if err != nil {
		return nil, err
	}
	gangs := &gangRemedies{cluster: c, known: map[[2]string]*api.Explanation{}}
	for i, s := range found {
		if s == nil || answers[i].Err != nil {
			continue
		}
		answers[i].Explanation, answers[i].Err = explained.answer(ctx, s, most)
		switch {
		case answers[i].Err != nil || most != withAdvice:
		case s.Counted():
			answers[i].Err = findWhole(ctx, c, s, answers[i].Explanation)
		default:
			answers[i].Err = gangs.find(ctx, s, answers[i].Explanation)
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("explain: %w", err)
		}
	}
	return answers, nil
}

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

// RefusedWorkloads lists the workloads whose pods use devices, and that the API server
// refuses.
func RefusedWorkloads(c *cluster.Cluster) []*lifecycle.Refusal {
	return slices.DeleteFunc(lifecycle.Refusals(c.Snapshot), func(r *lifecycle.Refusal) bool {
		w := r.Workload
		return !c.WantsDevices(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Spec: w.Template.Spec})
	})
}
