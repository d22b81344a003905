// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// meetObstacles turns "it fits" into [api.Blocked] if something else than devices is in the way.
func (v *Verdict) meetObstacles(ctx context.Context) error {
	f := &finder{Verdict: v}
	v.Obstacles = f.refusals()
	if v.Pod != nil && snapshot.Waits(v.Pod) {
		gang, err := f.gangObstacles(ctx, v.Pod)
		if err != nil {
			return err
		}
		v.Obstacles = append(append(v.Obstacles, gang...), f.volumeObstacles(v.Pod)...)
	}
	v.Unevaluated = f.unevaluated
	if v.Blocked() {
		v.Outcome, v.Code = api.Blocked, v.Obstacles[0].Code
	}
	return nil
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
