// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/hints"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/queue"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Options say what to explain.
type Options = target.Options

// KindDevice is the kind of what [Options.Device] names.
const KindDevice = target.KindDevice

// TargetError means that there is nothing to explain.
type TargetError = target.Error

// Explain reports whether the claims of a target can be allocated, and why. It
// fails with a [*TargetError] if there is no such target, and with the error
// of ctx if that is done before there is an answer.
func Explain(ctx context.Context, snap *snapshot.Snapshot, opts Options) (*api.Explanation, error) {
	alloc, err := allocator.New(ctx, cluster.New(snap))
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	return ExplainWith(ctx, alloc, snap, opts)
}

// ExplainWith is [Explain] with an allocator for the same snapshot, for those
// who ask about several targets.
func ExplainWith(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, opts Options) (*api.Explanation, error) {
	t, err := target.Find(snap, alloc, opts)
	if err != nil {
		return nil, err
	}
	first, err := explainTarget(ctx, alloc, snap, t)
	if err != nil || first.Verdict == api.Fits {
		return first, err
	}
	// One of the other pods that wait for the same claim may get it allocated.
	for _, pod := range t.Others[:min(len(t.Others), maxOthers)] {
		other := *t
		other.UsePod(alloc, pod)
		answer, err := explainTarget(ctx, alloc, snap, &other)
		if err != nil {
			return nil, err
		}
		if answer.Verdict == api.Fits {
			answer.Summary = fmt.Sprintf("It can be allocated for pod %s, not for others that wait for it. %s", pod.Name, answer.Summary)
			return answer, nil
		}
	}
	return first, nil
}

// builderWithQueue is a builder that can ask other questions.
func builderWithQueue(alloc *allocator.Allocator, snap *snapshot.Snapshot, t *target.Target) *builder {
	x := newBuilder(alloc, snap, t)
	x.explain, x.explainer = ExplainWith, explainer()
	return x
}

// explainer is what the queue asks.
func explainer() queue.Explainer {
	return queue.Explainer{
		Explain: explainTarget,
		Describe: func(alloc *allocator.Allocator, snap *snapshot.Snapshot, t *target.Target) *api.Explanation {
			x := newBuilder(alloc, snap, t)
			x.describe()
			return x.out
		},
	}
}

// maxOthers is how many more pods are tried that wait for a claim.
const maxOthers = 4

func explainTarget(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, t *target.Target) (*api.Explanation, error) {
	x := builderWithQueue(alloc, snap, t)
	if err := x.run(ctx); err != nil {
		return nil, fmt.Errorf("explain %s: %w", target.Text(t.Object), err)
	}
	if err := x.describeNode(ctx); err != nil {
		return nil, err
	}
	if err := x.describeDevice(ctx); err != nil {
		return nil, err
	}
	x.out.OnEveryNode = len(x.out.Nodes) == 1 && x.out.Nodes[0].Message == x.out.Summary
	x.out.Summary = english.Sentence(x.out.Summary)
	x.out.Code = codeOf(x.out)
	return x.out, nil
}

// run answers from the top down: what there is, what the allocator says, what else
// is in the way, what could not be known, how far the pod has come, what is true
// besides.
func (x *builder) run(ctx context.Context) error {
	x.describe()
	if err := x.allocate(ctx); err != nil {
		return err
	}
	if err := x.meetObstacles(ctx); err != nil {
		return err
	}
	if err := x.lookAhead(ctx); err != nil {
		return err
	}
	x.assume()
	x.describeStage()
	x.addHints(ctx)
	return nil
}

// addHints says what is true besides.
func (x *builder) addHints(ctx context.Context) {
	if !x.target.VerdictOnly {
		hints.Add(x.Question, x.target.Object, x.out)
	}
	hints.AddOfConfig(ctx, x.Question, x.out)
}

// allocate finds the verdict of the allocator, and of what comes before it.
func (x *builder) allocate(ctx context.Context) error {
	if x.beyondScheduling() || x.settled(claimProblem(x.Question)) || x.deletingTarget() || x.unservedPod() {
		return nil
	}
	if len(x.Claims) == 0 && x.Pod == nil && (x.target.Only == nil || len(funnel.Misfits(x.Question, x.target.Only)) == 0) {
		x.out.Verdict = api.Allocated
		x.out.Summary = allocatedSummary(x.Pod, x.out.Claims)
		return nil
	}
	if x.settled(refusal(x.Question)) {
		return x.advise(ctx)
	}
	nodes := x.target.Nodes(x.Cluster.Alloc)
	x.out.Assumptions = append(x.out.Assumptions, survey(x.Question, nodes)...)
	x.out.NodeCount = len(nodes)
	for i := range x.Claims {
		if err := x.account(ctx, &x.Claims[i]); err != nil {
			return err
		}
	}
	if !x.target.VerdictOnly {
		x.trace(ctx)
	}
	return x.decide(ctx)
}

// codeOf is the dominant reason: the one that settled the matter, or else that of
// the most promising nodes.
func codeOf(out *api.Explanation) api.Code {
	switch {
	case out.Verdict == api.Fits, out.Verdict == api.Allocated:
		return ""
	case out.Code == "" && len(out.Nodes) > 0:
		return out.Nodes[0].Code
	default:
		return out.Code
	}
}

// account makes the funnels of a claim.
func (x *builder) account(ctx context.Context, c *funnel.Claim) error {
	pools := len(x.Cluster.Facts.Pools.All())
	if x.target.Only != nil {
		pools = len(x.Cluster.Pools[x.target.Only.Name])
	}
	if err := x.AddFunnels(ctx, c, x.target.Only); err != nil {
		return err
	}
	explained := &x.out.Claims[c.Index]
	for _, alternatives := range c.Funnels {
		for _, f := range alternatives {
			request := f.Explanation(pools)
			if place, ok := funnel.ExtendedRequestOf(x.Question, c.Claim, f.Request.Base); ok {
				request.Container = place.Container.Name
			}
			explained.Requests = append(explained.Requests, request)
		}
	}
	for _, constraint := range claimspec.Constraints(c.Claim) {
		explained.Constraints = append(explained.Constraints, constraint.String())
	}
	return nil
}

// Word is an answer in one word, for tables: the code or, if there is none, the
// verdict.
func Word(e *api.Explanation) string {
	return cmp.Or(string(e.Code), string(e.Verdict))
}
