// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Decide decides what becomes of a target. The selectors may know answers to other questions
// about the cluster; with nil, new ones are made. The error is from ctx, or what keeps the
// allocator from an answer.
func Decide(ctx context.Context, c *cluster.Cluster, t *target.Target, selectors *selector.Evaluator) (*Verdict, error) {
	v := &Verdict{Question: eligibility.NewQuestion(c, t.Pod, t.Claims), Target: t, Ended: -1}
	if selectors != nil {
		v.Evaluate(selectors)
	}
	eligibility.ListWaiting(v.Question)
	t.Claims = v.PodClaims
	if err := v.decideDevices(ctx); err != nil {
		return nil, err
	}
	v.Outcome = v.Devices
	if err := v.meetObstacles(ctx); err != nil {
		return nil, err
	}
	v.findLife()
	return v, nil
}

// decideDevices finds the verdict about devices.
func (v *Verdict) decideDevices(ctx context.Context) error {
	if v.Settled = settlement(v.Question, v.Target); v.Settled == nil {
		v.Settled = refusal(v.Question)
	}
	if v.Settled != nil {
		v.Allocator, v.Devices, v.Code = v.Settled.Outcome, v.Settled.Outcome, v.Settled.Code
		return nil
	}
	// Both look at all of the cluster, and neither needs the other.
	var begun sync.WaitGroup
	if v.Target.Only == nil {
		begun.Go(func() {
			for i := range v.Claims {
				v.BeginFunnels(ctx, &v.Claims[i])
			}
		})
	}
	v.Unread = Survey(v.Question, v.Target.Nodes(v.Cluster))
	begun.Wait()
	for i := range v.Claims {
		var err error
		if only := v.Target.Only; only != nil {
			err = v.AddFunnels(ctx, &v.Claims[i], only)
		} else {
			err = v.FinishFunnels(ctx, &v.Claims[i])
		}
		if err != nil {
			return err
		}
	}
	if err := v.check(ctx); err != nil {
		return err
	}
	return v.conclude(ctx)
}

// Survey sorts nodes into those where the allocator is asked and those that the pod cannot use,
// as the scheduler's earlier filters do.
func Survey(q *eligibility.Question, nodes []*corev1.Node) (unread []UnreadNode) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	q.Reach.Pools = make(map[string][]*cluster.NodePool, len(nodes))
	q.Reach.Misfits = map[string][]eligibility.UnsuitableNode{}
	for _, node := range nodes {
		pools, err := q.Cluster.Pools.For(node)
		if err != nil {
			unread = append(unread, UnreadNode{node.Name, err})
		} else {
			q.Reach.Pools[node.Name] = pools
		}
		if misfits := eligibility.Misfits(q, node); len(misfits) > 0 {
			q.Reach.Unsuitable = append(q.Reach.Unsuitable, eligibility.Unsuitable(misfits))
			q.Reach.Misfits[node.Name] = misfits
			continue
		}
		q.Reach.Candidates = append(q.Reach.Candidates, node)
	}
	return unread
}

// conclude draws the verdict about devices from the nodes.
func (v *Verdict) conclude(ctx context.Context) error {
	v.Allocator = v.ofNodes()
	v.Devices = v.Allocator
	var err error
	if v.Release, err = v.heedRelease(ctx); err != nil {
		return err
	}
	if v.Release != nil && v.Release.Outcome != "" {
		v.Devices, v.Placement = v.Release.Outcome, nil
		return nil
	}
	v.heedGaps()
	return nil
}

// ofNodes returns the verdict of the allocator, with the placement if the claims fit.
func (v *Verdict) ofNodes() api.Verdict {
	best, undetermined := v.best(), false
	for i := range v.Checked {
		undetermined = undetermined || v.NodeVerdict(i) == api.Undetermined
		switch v.Checked[i].Outcome {
		case allocator.Failed:
			v.Ended = i
			return api.Error
		case allocator.TimedOut:
			if best >= 0 && !v.Checked[i].EndsAttempt {
				// The scheduler goes on to other nodes, in releases before 1.36.
				continue
			}
			v.Ended = i
			return api.Undetermined
		default:
		}
	}
	switch {
	case best < 0 && undetermined:
		return api.Undetermined
	case best < 0:
		return api.DoesNotFit
	case len(v.Claims) == 0:
		return api.Allocated
	}
	v.Placement = &Placement{Node: v.Reach.Candidates[best], Score: v.Score(best), Allocations: v.Checked[best].Allocations}
	if claims, err := v.ClaimsFor(v.Placement.Node); err == nil {
		v.Placement.Claims = claims
	}
	return api.Fits
}

// findLife finds where the target stands in its life. The outcome is Blocked if the pod has its
// devices and cannot work with them.
func (v *Verdict) findLife() {
	var own lifecycle.Life
	if v.Target.Creator != nil && v.Target.End == nil {
		v.Creation = lifecycle.OfCreator(v.Cluster.Snapshot, v.Target.Creator)
	}
	switch pod := v.Pod; {
	case pod == nil:
	case v.Target.Hypothetical:
		own.Findings = append(own.Findings, lifecycle.GateFindings(pod)...)
	default:
		own = lifecycle.Of(v.Cluster, pod, v.PodClaims)
		if own.Stage == api.StageAllocation && len(v.Reach.Candidates) == 0 && len(v.Reach.Unsuitable) > 0 && !v.fitsElsewhere() {
			own.Stage = api.StageNodeFit
		}
		v.LifeOf = pod
	}
	if v.Blocked() {
		own = v.blockedLife(own)
	}
	own = own.After(v.Creation)
	forClaim := v.Pod == nil && v.Target.Object.Kind == api.KindClaim
	for _, pod := range v.Target.Users[:min(len(v.Target.Users), target.MaxPods)] {
		if pod == v.Pod {
			v.PodStages = append(v.PodStages, own.Stage)
			continue
		}
		other := lifecycle.Of(v.Cluster, pod, v.Cluster.Claims.OfPod(pod))
		v.PodStages = append(v.PodStages, other.Stage)
		if snapshot.Finished(pod) {
			// Whether the claim is still reserved for it is found out for the claim.
			other.Findings = nil
		}
		if forClaim && (own.Stage == "" || !own.HasReason() && other.HasReason()) {
			own, v.LifeOf = other, pod
		}
	}
	v.Life = own
	if own.Blocked == nil {
		return
	}
	switch {
	case v.Outcome == api.Allocated, v.Outcome == api.Fits, v.Outcome == api.Blocked:
	case v.Outcome == api.DoesNotFit && own.Stage == api.StageBinding:
		// Devices that cannot be bound are released and others are looked for.
	default:
		return
	}
	v.Outcome, v.Code = api.Blocked, own.Blocked.Code
}

// fitsElsewhere reports whether the pod could use another node than the node of the
// question.
func (v *Verdict) fitsElsewhere() bool {
	if v.Target.Only == nil {
		return false
	}
	nodes, _ := v.Cluster.Nodes.All()
	for _, node := range nodes {
		if len(eligibility.Misfits(v.Question, node)) == 0 {
			return true
		}
	}
	return false
}

// blockedLife returns where a pod stands that something else than devices blocks. What else
// was found about it is evidence: it is the same thing in other words. So is what the API
// server has said of the same kind when it was to create a pod.
func (v *Verdict) blockedLife(own lifecycle.Life) lifecycle.Life {
	blocked := lifecycle.Life{Stage: v.Obstacles[0].Stage}
	for i := range v.Obstacles {
		f := v.Obstacles[i].Finding
		if said := v.Creation.Blocked; said != nil && said.Code == v.Obstacles[i].Code {
			f.Reason = ""
		}
		blocked.Findings = append(blocked.Findings, f)
	}
	if v.Pod != nil {
		blocked.Findings = append(blocked.Findings, lifecycle.GateFindings(v.Pod)...)
	}
	for _, f := range own.Findings {
		f.Reason = ""
		blocked.Findings = append(blocked.Findings, f)
	}
	return blocked
}

// WhatIf is a change that a question is asked about.
type WhatIf struct {
	// Cluster has the change; it is nil where none but the claims of the question change.
	Cluster *cluster.Cluster
	// FindAgain is set if the target itself may be changed, Features if a feature
	// gate is.
	FindAgain, Features bool
	// Claims are edits of the specs of claims, by their indices in
	// [eligibility.Question.PodClaims].
	Claims map[int][]api.Edit
}

// Again asks the question with a change made, up to the point where the allocator is asked. It
// is nil if something else is in the way already.
func (v *Verdict) Again(w WhatIf) (*eligibility.Question, error) {
	c, t := cmp.Or(w.Cluster, v.Cluster), v.Target
	if w.FindAgain {
		var err error
		if t, err = target.Find(c, v.Target.Options); err != nil {
			return nil, err
		}
		if pod := v.Pod; pod != nil && !v.Target.Hypothetical {
			t.UsePod(c, c.Snapshot.Pod(pod.Namespace, pod.Name))
		}
	}
	q := eligibility.NewQuestion(c, t.Pod, slices.Clone(t.Claims))
	if !w.Features {
		// No change affects what drivers publish, so that results and names hold.
		q.Selectors, q.Catalog = v.Selectors, v.Catalog
	}
	for i, edits := range w.Claims {
		pc := &q.PodClaims[i]
		spec, err := whatif.Edited(&pc.Claim.Spec, edits, "")
		if err != nil {
			return nil, err
		}
		claim := *pc.Claim
		claim.Spec = *spec
		pc.Claim = cluster.Defaulted(&claim)
	}
	eligibility.ListWaiting(q)
	if claimProblem(q) != nil || refusal(q) != nil {
		return nil, nil
	}
	if w.Cluster == nil && v.Reach.Pools != nil {
		q.Reach = v.Reach
		return q, nil
	}
	Survey(q, t.Nodes(c))
	return q, nil
}
