// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/hints"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/queue"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
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
	return ExplainWith(ctx, cluster.New(snap), opts)
}

// ExplainWith is [Explain] for a cluster that is asked about several targets.
func ExplainWith(ctx context.Context, c *cluster.Cluster, opts Options) (*api.Explanation, error) {
	t, err := target.Find(c, opts)
	if err != nil {
		return nil, err
	}
	first, err := explainTarget(ctx, c, t)
	if err != nil || first.Verdict == api.Fits {
		return first, err
	}
	// One of the other pods that wait for the same claim may get it allocated.
	for _, pod := range t.Others[:min(len(t.Others), maxOthers)] {
		other := *t
		other.UsePod(c, pod)
		other.Instead = true
		answer, err := explainTarget(ctx, c, &other)
		if err != nil {
			return nil, err
		}
		if answer.Verdict == api.Fits {
			return answer, nil
		}
	}
	return first, nil
}

// builderWithQueue is a builder that can ask other questions.
func builderWithQueue(c *cluster.Cluster, t *target.Target) *builder {
	x := newBuilder(c, t)
	x.explain, x.explainer = ExplainWith, explainer()
	return x
}

// explainer is what the queue asks.
func explainer() queue.Explainer {
	return queue.Explainer{
		Explain: explainTarget,
		Describe: func(c *cluster.Cluster, t *target.Target) *api.Explanation {
			x := newBuilder(c, t)
			x.describe()
			return x.out
		},
	}
}

// maxOthers is how many more pods are tried that wait for a claim.
const maxOthers = 4

func explainTarget(ctx context.Context, c *cluster.Cluster, t *target.Target) (*api.Explanation, error) {
	selectors, back := c.Evaluators.Lend()
	defer back()
	x := builderWithQueue(c, t)
	x.Evaluate(selectors)
	return x.explanation(ctx)
}

// explanation runs all steps and puts what they have to say into the summary.
func (x *builder) explanation(ctx context.Context) (*api.Explanation, error) {
	parts, err := x.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("explain %s: %w", target.Text(x.target.Object), err)
	}
	if parts.onNode, err = x.describeNode(ctx); err != nil {
		return nil, err
	}
	if x.target.Instead && x.out.Verdict == api.Fits {
		parts.instead = x.Pod.Name
	}
	describe := func(d *cluster.Device) (*api.DeviceExplanation, error) {
		return describeDevice(ctx, x.Question, x.out, parts.text(), x.target.Only, d)
	}
	if x.target.Device != nil {
		if x.out.Device, err = describe(x.target.Device); err != nil {
			return nil, err
		}
	}
	for _, d := range x.devices {
		described, err := describe(d)
		if err != nil {
			return nil, err
		}
		x.described = append(x.described, described)
	}
	x.out.OnEveryNode = len(x.out.Nodes) == 1 && x.out.Nodes[0].Message == parts.text()
	x.out.Summary = parts.sentence()
	x.out.Code = codeOf(x.out)
	return x.out, nil
}

// run answers from the top down: what there is, what the allocator says, what else
// is in the way, what could not be known, how far the pod has come, what is true
// besides. Each step returns what it has to say in the summary.
func (x *builder) run(ctx context.Context) (*summary, error) {
	x.describe()
	parts := &summary{}
	var err error
	if parts.reason, err = x.allocate(ctx); err != nil {
		return nil, err
	}
	if parts.unknown, err = x.meetObstacles(ctx); err != nil {
		return nil, err
	}
	if len(x.blockedBy) > 0 {
		// The findings say what is in the way.
		parts.reason = reason{}
	}
	if err := x.findOutlook(ctx); err != nil {
		return nil, err
	}
	x.assume()
	hasDevices := x.out.Verdict == api.Fits || x.out.Verdict == api.Allocated
	parts.findings = x.describeStage()
	if hasDevices && x.out.Verdict == api.Blocked && x.target.Creator != nil && x.out.Code != api.NotAdmitted && (&lifecycle.Life{Findings: parts.findings}).HasReason() {
		// Nothing follows by itself: the devices are no reason.
		parts.reason = reason{}
	}
	parts.besides = x.addHints(ctx)
	return parts, x.findWhyHere(ctx)
}

// addHints says what is true besides.
func (x *builder) addHints(ctx context.Context) hints.Found {
	var found hints.Found
	if !x.target.VerdictOnly {
		found = hints.Find(x.Question, x.target.Object, x.out)
		x.out.Hints = append(x.out.Hints, found.Hints...)
		x.out.Hints = x.out.Hints[:min(len(x.out.Hints), hints.Most)]
	}
	x.out.Hints = append(x.out.Hints, hints.OfConfig(ctx, x.Question, x.out)...)
	return found
}

// settlement is what settles the matter before any node is tried, nil if nothing
// does. The first one to say something wins.
func (x *builder) settlement() *settlement {
	for _, find := range []func() *settlement{
		x.withoutPods,
		x.beyondScheduling,
		func() *settlement { return claimProblem(x.Question) },
		x.deletingTarget,
		x.unservedPod,
		x.nothingToAllocate,
	} {
		if s := find(); s != nil {
			return s
		}
	}
	return nil
}

// allocate finds the verdict of the allocator, or of what comes before it, and the
// reason.
func (x *builder) allocate(ctx context.Context) (reason, error) {
	if s := x.settlement(); s != nil {
		return x.settle(s), nil
	}
	if s := refusal(x.Question); s != nil {
		s.message += classesHint(ctx, x.Question, s.classes)
		said := x.settle(s)
		if x.target.VerdictOnly {
			return said, nil
		}
		for _, class := range s.classes {
			if x.Catalog.MeantClass(ctx, class, x.Cluster.Snapshot.Classes) == "" {
				x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorAdmin, Text: x.Catalog.ClassMissing(class)})
			}
		}
		_, err := x.advise(ctx)
		return said, err
	}
	nodes := x.target.Nodes(x.Cluster)
	// Both look at all of the cluster, and neither needs the other.
	var begun sync.WaitGroup
	if x.target.Only == nil {
		begun.Go(func() {
			for i := range x.Claims {
				x.BeginFunnels(ctx, &x.Claims[i])
			}
		})
	}
	x.out.Assumptions = append(x.out.Assumptions, survey(x.Question, nodes)...)
	begun.Wait()
	x.out.NodeCount = len(nodes)
	for _, further := range x.target.LeftOut {
		x.out.NodeCount += len(further)
	}
	if err := x.account(ctx); err != nil {
		return reason{}, err
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

// account makes the funnels of all claims, or finishes them. Those of one are described while the
// next one is worked on.
func (x *builder) account(ctx context.Context) error {
	var described sync.WaitGroup
	defer described.Wait()
	for i := range x.Claims {
		c := &x.Claims[i]
		pools := len(x.Cluster.Pools.All())
		var err error
		if only := x.target.Only; only != nil {
			pools = len(x.Reach.Pools[only.Name])
			err = x.AddFunnels(ctx, c, only)
		} else {
			err = x.FinishFunnels(ctx, c)
		}
		if err != nil {
			return err
		}
		described.Go(func() { x.describeFunnels(c, pools) })
	}
	return nil
}

// describeFunnels says what the funnels of a claim have found, in so many pools.
func (x *builder) describeFunnels(c *funnel.Claim, pools int) {
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
	for _, constraint := range cluster.Constraints(c.Claim) {
		explained.Constraints = append(explained.Constraints, constraint.String())
	}
}

// Word is an answer in one word, for tables: the code or, if there is none, the
// verdict.
func Word(e *api.Explanation) string {
	return cmp.Or(string(e.Code), string(e.Verdict))
}
