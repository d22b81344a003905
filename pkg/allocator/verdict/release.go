// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// heedRelease looks up what schedulers of the cluster's release decide otherwise than the library.
// It is nil if nothing depends on the release.
func (v *Verdict) heedRelease(ctx context.Context) (*Release, error) {
	if v.Cluster.Snapshot.BinaryVersion() == "" {
		if release, err := v.withoutRelease(ctx); release != nil || err != nil {
			return release, err
		}
	}
	if v.Allocator == api.Fits && v.Cluster.Behaves(cluster.MixedClaimsFailScore) && v.mixedOnSeveral() {
		return &Release{Behavior: cluster.MixedClaimsFailScore, Outcome: api.Error}, nil
	}
	return nil, nil
}

// withoutRelease returns the differences between the possible releases if the release is
// not known.
func (v *Verdict) withoutRelease(ctx context.Context) (*Release, error) {
	c := v.Cluster
	fits := v.Allocator == api.Fits
	poolError := slices.IndexFunc(v.Checked, func(checked allocator.NodeVerdict) bool {
		return checked.Outcome == allocator.Failed && allocator.IsPoolError(checked.Err)
	})
	switch {
	case fits && c.Varies(cluster.MixedClaimsFailScore) && v.mixedOnSeveral():
		return &Release{Behavior: cluster.MixedClaimsFailScore, Outcome: api.Undetermined}, nil
	case fits && c.Varies(cluster.AllWithCountersPanics) && v.meetsCounters():
		return &Release{Behavior: cluster.AllWithCountersPanics, Outcome: api.Undetermined}, nil
	case fits && c.Varies(cluster.OpenRuleTaintsAll) && OpenRule(v.Question) != nil:
		return &Release{Behavior: cluster.OpenRuleTaintsAll, Outcome: api.Undetermined}, nil
	case v.Allocator == api.Error && poolError >= 0 && c.Varies(cluster.AllPoolErrorEndsAttempt):
		return v.poolErrorPerNode(ctx, v.Checked[poolError].Err)
	case v.Allocator != api.DoesNotFit && c.Varies(cluster.TimeoutEndsAttempt) && slices.ContainsFunc(v.Checked, func(checked allocator.NodeVerdict) bool { return checked.Outcome == allocator.TimedOut }):
		return &Release{Behavior: cluster.TimeoutEndsAttempt}, nil
	case fits && c.Varies(cluster.ListsNotCompared) && c.Gates.ListsCompared() && Constrains(v.Question, ComparesLists(v.Question)):
		return &Release{Behavior: cluster.ListsNotCompared}, nil
	}
	return nil, nil
}

// poolErrorPerNode asks for the outcome if an error of a pool concerns only its node.
func (v *Verdict) poolErrorPerNode(ctx context.Context, poolError error) (*Release, error) {
	release := &Release{Behavior: cluster.AllPoolErrorEndsAttempt, Err: poolError}
	c := allocator.Reopen(v.Cluster, allocator.WithPoolErrorsPerNode())
	perNode := allocator.Of(c).CheckAll(ctx, v.Reach.Candidates, v.ClaimsFor)
	if at := slices.IndexFunc(perNode, func(checked allocator.NodeVerdict) bool { return checked.Outcome == allocator.Fits }); at >= 0 {
		release.Outcome, release.Node = api.Undetermined, v.Reach.Candidates[at].Name
	}
	return release, ctx.Err()
}

// OpenRule returns a rule without a selector whose taint a request does not tolerate, nil
// if there is none.
func OpenRule(q *eligibility.Question) *resourceapi.DeviceTaintRule {
	facts := q.Cluster
	if !facts.Gates.Enabled(cluster.GateDeviceTaints) || !facts.Gates.Enabled(cluster.GateDeviceTaintRules) {
		return nil
	}
	for _, rule := range facts.Snapshot.TaintRules {
		tolerates := func(tolerations []resourceapi.DeviceToleration) bool {
			return slices.ContainsFunc(tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, rule.Spec.Taint) })
		}
		if rule.Spec.DeviceSelector == nil && rule.Spec.Taint.Effect != resourceapi.DeviceTaintEffectNone && slices.ContainsFunc(q.Claims, func(c eligibility.Claim) bool {
			return slices.ContainsFunc(c.Claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
				return r.Exactly != nil && !tolerates(r.Exactly.Tolerations) || r.Exactly == nil && !slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool { return tolerates(s.Tolerations) })
			})
		}) {
			return rule
		}
	}
	return nil
}

// mixedOnSeveral reports whether claims are allocated, others are not, and several nodes are
// suitable.
func (v *Verdict) mixedOnSeveral() bool {
	fitting := 0
	for i := range v.Checked {
		if v.Checked[i].Outcome == allocator.Fits {
			fitting++
		}
	}
	return fitting > 1 && len(v.Claims) > 0 && slices.ContainsFunc(v.PodClaims, func(pc cluster.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Status.Allocation != nil
	})
}

// meetsCounters reports whether a request for all devices gets a device that consumes
// counters, on any node.
func (v *Verdict) meetsCounters() bool {
	for i := range v.Checked {
		if v.Checked[i].Outcome != allocator.Fits || !slices.ContainsFunc(v.Claims, func(c eligibility.Claim) bool { return WantsAll(c.Claim) }) {
			continue
		}
		if claims, err := v.ClaimsFor(v.Reach.Candidates[i]); err == nil && allocator.TakesAllWithCounters(v.Cluster, claims, v.Checked[i].Allocations) {
			return true
		}
	}
	return false
}

// Constrains reports whether a claim has a certain constraint.
func Constrains(q *eligibility.Question, is func(*resourceapi.DeviceConstraint) bool) bool {
	return slices.ContainsFunc(q.Claims, func(c eligibility.Claim) bool {
		return slices.ContainsFunc(c.Claim.Spec.Devices.Constraints, func(constraint resourceapi.DeviceConstraint) bool { return is(&constraint) })
	})
}

// ComparesLists returns a function that reports whether a constraint compares an attribute that
// is a list on some device.
func ComparesLists(q *eligibility.Question) func(*resourceapi.DeviceConstraint) bool {
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

// WantsAll reports whether a claim asks for all devices, be it as an alternative.
func WantsAll(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll ||
			slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool {
				return s.AllocationMode == resourceapi.DeviceAllocationModeAll
			})
	})
}

// heedGaps turns the verdict into Undetermined if something was hidden, or is not known of the
// cluster's release, that could turn it around.
// More allocated devices never make a claim fit, so that hidden claims leave DoesNotFit as it is;
// but they can hide devices on which a selector fails.
func (v *Verdict) heedGaps() {
	var decisive []string
	switch v.Allocator {
	case api.Fits:
		decisive = []string{snapshot.ResourceClaims, snapshot.ResourceSlices}
	case api.DoesNotFit:
		decisive = []string{snapshot.ResourceSlices, snapshot.ResourceNodes}
		if len(v.Claims) == 0 {
			decisive = []string{snapshot.ResourceNodes}
		}
		if v.Pod != nil && len(v.Pod.Spec.Containers) > 0 && v.extendedMisfit() {
			decisive = append(decisive, snapshot.ResourceClasses)
		}
	case api.Error:
		// A node where the claims fit comes before the error.
		if v.Ended >= 0 && len(v.fits) == 0 && slices.Contains([]api.Code{api.SelectorError, api.PoolIncomplete, api.PoolInvalid, api.ConstraintUnsatisfiable}, ErrorCode(v.Checked[v.Ended].Err)) {
			if _, problem, _ := eligibility.CompileProblem(v.Question); problem != nil {
				// That does not depend on devices. A newer release may have what is not known here.
				if v.Cluster.Snapshot.Newer() {
					v.Devices = api.Undetermined
				}
				break
			}
			decisive = []string{snapshot.ResourceClaims, snapshot.ResourceSlices}
		}
	case api.Allocated, api.Blocked, api.Undetermined:
	}
	for _, resource := range decisive {
		if gap := v.Cluster.Snapshot.Gap(resource); gap != nil {
			v.Devices, v.Gap = api.Undetermined, gap
			return
		}
	}
	if _, known := v.Cluster.Nodes.All(); !known && v.Allocator == api.DoesNotFit && !v.nodesDoNotMatter() {
		v.Devices, v.NoNode = api.Undetermined, true
	}
}

// nodesDoNotMatter reports whether all devices name their node, so that made-up nodes are as good
// as real ones.
func (v *Verdict) nodesDoNotMatter() bool {
	return !slices.ContainsFunc(v.Cluster.Snapshot.Slices, func(slice *resourceapi.ResourceSlice) bool { return slice.Spec.NodeName == nil })
}

// extendedMisfit reports whether a node was ruled out for an extended resource.
func (v *Verdict) extendedMisfit() bool {
	return slices.ContainsFunc(v.Reach.Unsuitable, func(u eligibility.UnsuitableNode) bool {
		return u.Misfit.Filter == cluster.FilterResources && strings.Contains(string(u.Misfit.Resource), "/")
	})
}
