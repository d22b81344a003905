// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/behavior"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
)

// releaseAnswer is what the release of the cluster makes of the library's answer.
type releaseAnswer struct {
	// verdict is empty if the library's stays, and summary then, too.
	verdict    api.Verdict
	summary    string
	assumption string
}

// heedRelease looks up what schedulers of the cluster's release decide otherwise
// than the library, but for what the allocator has heeded for each node. Where the
// release is not known, it says what depends on it.
func heedRelease(ctx context.Context, q *funnel.Question, out *api.Explanation, verdicts []allocator.Verdict, verdict api.Verdict) (releaseAnswer, error) {
	facts := q.Cluster
	release := "kube-scheduler " + facts.Snapshot.BinaryVersion()
	if facts.Snapshot.BinaryVersion() == "" {
		if answer, err := withoutRelease(ctx, q, out, verdicts, verdict); answer != (releaseAnswer{}) || err != nil {
			return answer, err
		}
		if release = "kube-scheduler"; facts.Snapshot.Skew.From > 0 {
			release = fmt.Sprintf("kube-scheduler of 1.%d", facts.Snapshot.Skew.From)
		}
	}
	if verdict == api.Fits && facts.Behaves(behavior.MixedClaimsFailScore) && mixedOnSeveral(q, verdicts) {
		if proof := facts.Proof(behavior.MixedClaimsFailScore); proof != nil {
			release = "as its message about pod " + proof.Name + " proves, kube-scheduler"
		}
		return releaseAnswer{verdict: api.Error, summary: fmt.Sprintf(
			"%s fails to score the nodes for a pod with claims that are allocated and others that are not, where more than one node is suitable (kubernetes/kubernetes#139017, fixed in 1.35.6 and 1.36.2)", release)}, nil
	}
	if verdict == api.DoesNotFit && facts.Behaves(behavior.ListsNotCompared) && facts.Gates.Enabled(cluster.GateListTypeAttributes) && constraintFails(q, out.Nodes, comparesLists(q)) {
		return releaseAnswer{assumption: release + " does not compare lists in constraints, even with DRAListTypeAttributes on: devices with lists never match (kubernetes/kubernetes#139332, fixed in 1.37)"}, nil
	}
	if verdict == api.Fits && len(q.Claims) > 0 && facts.Behaves(behavior.UnsortedPools) {
		return releaseAnswer{assumption: release + " tries the pools of a node in random order: the pod can get other devices than these (kubernetes/kubernetes#136641)"}, nil
	}
	return releaseAnswer{}, nil
}

// poolOrder says what depends on the order of pools, which is a random one in the stable
// implementation (GatherPools in structured/internal/stable/pools_stable.go): whether a request for
// all devices meets first a device that a constraint does not allow, which ends the attempt, or
// one that is in use.
func poolOrder(q *funnel.Question) string {
	if q.Cluster.Gates.Channel() != cluster.ChannelStable || !slices.ContainsFunc(q.Claims, func(c funnel.Claim) bool {
		return wantsAll(c.Claim) && len(c.Claim.Spec.Devices.Constraints) > 0
	}) {
		return ""
	}
	return "with these feature gates the scheduler tries the pools of a node in random order: if a constraint or a device in use keeps a request from all devices, it depends on that order whether an attempt ends for all nodes or for that node only"
}

// openRule is a rule without a selector whose taint a request does not tolerate.
func openRule(q *funnel.Question) *resourceapi.DeviceTaintRule {
	facts := q.Cluster
	if !facts.Gates.Enabled(cluster.GateDeviceTaints) || !facts.Gates.Enabled(cluster.GateDeviceTaintRules) {
		return nil
	}
	for _, rule := range facts.Snapshot.TaintRules {
		tolerates := func(tolerations []resourceapi.DeviceToleration) bool {
			return slices.ContainsFunc(tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, rule.Spec.Taint) })
		}
		if rule.Spec.DeviceSelector == nil && rule.Spec.Taint.Effect != resourceapi.DeviceTaintEffectNone && slices.ContainsFunc(q.Claims, func(c funnel.Claim) bool {
			return slices.ContainsFunc(c.Claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
				return r.Exactly != nil && !tolerates(r.Exactly.Tolerations) || r.Exactly == nil && !slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool { return tolerates(s.Tolerations) })
			})
		}) {
			return rule
		}
	}
	return nil
}

// mixedOnSeveral reports whether claims are allocated, others are not, and several
// nodes are suitable.
func mixedOnSeveral(q *funnel.Question, verdicts []allocator.Verdict) bool {
	fitting := 0
	for _, v := range verdicts {
		if v.Outcome == allocator.Fits {
			fitting++
		}
	}
	return fitting > 1 && len(q.Claims) > 0 && slices.ContainsFunc(q.PodClaims, func(pc cluster.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Status.Allocation != nil
	})
}

// distinctFails reports whether a distinctAttribute may be why nothing fits.
func distinctFails(q *funnel.Question, nodes []api.NodeGroup) bool {
	return constraintFails(q, nodes, func(c *resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil })
}

// constraintFails reports whether a certain constraint may be why nothing fits.
func constraintFails(q *funnel.Question, nodes []api.NodeGroup, is func(*resourceapi.DeviceConstraint) bool) bool {
	return constrains(q, is) && slices.ContainsFunc(nodes, func(group api.NodeGroup) bool { return group.Code == api.ConstraintUnsatisfiable })
}

// constrains reports whether a claim has a certain constraint.
func constrains(q *funnel.Question, is func(*resourceapi.DeviceConstraint) bool) bool {
	return slices.ContainsFunc(q.Claims, func(c funnel.Claim) bool {
		return slices.ContainsFunc(c.Claim.Spec.Devices.Constraints, func(constraint resourceapi.DeviceConstraint) bool { return is(&constraint) })
	})
}

// comparesLists returns a function that reports whether a constraint is about an
// attribute that is a list on some device.
func comparesLists(q *funnel.Question) func(*resourceapi.DeviceConstraint) bool {
	return func(c *resourceapi.DeviceConstraint) bool {
		name := resourceapi.QualifiedName(*cmp.Or(c.MatchAttribute, c.DistinctAttribute))
		return slices.ContainsFunc(q.Cluster.Snapshot.Slices, func(slice *resourceapi.ResourceSlice) bool {
			return slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool {
				short, own := strings.CutPrefix(string(name), slice.Spec.Driver+"/")
				attribute, has := d.Attributes[name]
				if !has && own {
					attribute, has = d.Attributes[resourceapi.QualifiedName(short)]
				}
				return has && selector.IsList(attribute)
			})
		})
	}
}

// wantsAll reports whether a claim asks for all devices, be it as an alternative.
func wantsAll(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll ||
			slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool {
				return s.AllocationMode == resourceapi.DeviceAllocationModeAll
			})
	})
}

// withoutRelease is the answer where the release is not known: both, if they differ.
func withoutRelease(ctx context.Context, q *funnel.Question, out *api.Explanation, verdicts []allocator.Verdict, verdict api.Verdict) (releaseAnswer, error) {
	facts := q.Cluster
	poolError := slices.IndexFunc(verdicts, func(v allocator.Verdict) bool {
		return v.Outcome == allocator.Failed && allocator.IsPoolError(v.Err)
	})
	switch {
	case verdict == api.Fits && facts.Varies(behavior.MixedClaimsFailScore) && mixedOnSeveral(q, verdicts):
		return dependsOnRelease(139017, "the claims fit, but kube-scheduler 1.35.0 to 1.35.5, 1.36.0 and 1.36.1 fail to score the nodes for a pod with claims that are allocated and others that are not"), nil
	case verdict == api.Fits && facts.Varies(behavior.AllWithCountersPanics) && meetsCounters(q, verdicts):
		return dependsOnRelease(138885, "the claims fit, but kube-scheduler 1.35.0 to 1.35.5, 1.36.0 and 1.36.1 panics when a request for all devices takes one that consumes counters"), nil
	case verdict == api.Fits && facts.Varies(behavior.OpenRuleTaintsAll) && openRule(q) != nil:
		return dependsOnRelease(141620, "the claims fit, but "+facts.Taints.OpenRuleText(openRule(q))), nil
	case verdict == api.Error && poolError >= 0 && facts.Varies(behavior.AllPoolErrorEndsAttempt):
		return poolErrorWithoutRelease(ctx, q, verdicts[poolError].Err)
	case verdict != api.DoesNotFit && facts.Varies(behavior.TimeoutEndsAttempt) && slices.ContainsFunc(verdicts, func(v allocator.Verdict) bool { return v.Outcome == allocator.TimedOut }):
		return releaseAnswer{assumption: "the Kubernetes version is not known: up to 1.35, a search that times out ends the attempt for that node only; from 1.36 on, for all nodes (kubernetes/kubernetes#137607)"}, nil
	case verdict == api.DoesNotFit && facts.Varies(behavior.DistinctPerRequest) && distinctFails(q, out.Nodes):
		return releaseAnswer{assumption: "the Kubernetes version is not known: up to 1.36, distinctAttribute does not apply to the devices of one request, and the claim may fit (kubernetes/kubernetes#140600)"}, nil
	case verdict == api.Fits && facts.Varies(behavior.ListsNotCompared) && facts.Gates.ListsCompared() && constrains(q, comparesLists(q)):
		return releaseAnswer{assumption: "the Kubernetes version is not known: constraints compare lists from 1.37 on; in 1.36, devices with lists never match, and the claim may not fit (kubernetes/kubernetes#139332)"}, nil
	}
	return releaseAnswer{}, nil
}

// dependsOnRelease is the answer where a fix turns the verdict around.
func dependsOnRelease(fix int, summary string) releaseAnswer {
	return releaseAnswer{
		verdict:    api.Undetermined,
		summary:    "it depends on the Kubernetes version, which is not known: " + summary,
		assumption: fmt.Sprintf("the Kubernetes version is not known, and the verdict depends on it (kubernetes/kubernetes#%d): set --kubernetes-version", fix),
	}
}

// meetsCounters reports whether a request for all devices gets one that consumes
// counters, on any node.
func meetsCounters(q *funnel.Question, verdicts []allocator.Verdict) bool {
	for i, v := range verdicts {
		if v.Outcome != allocator.Fits || !slices.ContainsFunc(q.Claims, func(c funnel.Claim) bool { return wantsAll(c.Claim) }) {
			continue
		}
		if claims, err := q.ClaimsFor(q.Reach.Candidates[i]); err == nil && allocator.TakesAllWithCounters(q.Cluster, claims, v.Allocations) {
			return true
		}
	}
	return false
}

// poolErrorWithoutRelease asks what happens if the error is only that of its node.
func poolErrorWithoutRelease(ctx context.Context, q *funnel.Question, poolError error) (releaseAnswer, error) {
	c := allocator.Reopen(q.Cluster, allocator.WithPoolErrorsPerNode())
	perNode := allocator.Of(c).CheckAll(ctx, q.Reach.Candidates, q.ClaimsFor)
	if at := slices.IndexFunc(perNode, func(v allocator.Verdict) bool { return v.Outcome == allocator.Fits }); at >= 0 {
		return dependsOnRelease(141898, fmt.Sprintf("up to 1.37 the attempt ends for all nodes (%s), from 1.38 on the pod can go to node %s",
			errorText(poolError), q.Reach.Candidates[at].Name)), ctx.Err()
	}
	return releaseAnswer{assumption: "the Kubernetes version is not known: up to 1.37, the error ends the attempt for all nodes; from 1.38 on, only for that node, and no other node fits (kubernetes/kubernetes#141898)"}, ctx.Err()
}
