// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fact is something that holds and may be why claims do not fit. Facts can be
// given up in thought: relax edits copies of the claims, or freed names an
// allocated claim that would give back what it has.
type fact struct {
	text     string
	evidence Evidence
	// relax edits the claims that wait. Instead of it, drops is a part of a
	// selector, or freed a claim that holds devices.
	relax func(claims []*resourceapi.ResourceClaim)
	drops *selectorPart
	freed *resourceapi.ResourceClaim
	// counts is the claim and the request whose number of devices this is.
	counts *[2]int
	// remedy is what somebody would do about it.
	remedy remedy
}

// scene is one node, its pools and the claims that hold something in them:
// small enough to be tried many times.
type scene struct {
	alloc *allocator.Allocator
	snap  *snapshot.Snapshot
	node  *corev1.Node
	// claims are those that wait.
	claims    []*resourceapi.ResourceClaim
	selectors *selectors
	facts     []fact
}

// maxFacts bounds the work on one conflict.
const maxFacts = 150

// newScene cuts a node out of the cluster.
func (x *inquiry) newScene(ctx context.Context, node *corev1.Node) (*scene, error) {
	claims, err := x.claimsFor(node)
	if err != nil {
		return nil, err
	}
	if len(claims) != len(x.claims) {
		// A device plugin of the node serves one of them.
		return nil, errNoProblem
	}
	s := &scene{alloc: x.site.alloc, node: node, claims: claims, selectors: x.selectors}
	cut := *x.snap
	cut.Nodes, cut.Slices, cut.Claims, cut.TaintRules, cut.Pods = []*corev1.Node{node}, nil, nil, nil, nil
	var held []string
	devices := map[string][]string{}
	for _, pool := range x.site.pools[node.Name] {
		cut.Slices = append(cut.Slices, pool.Pool.Slices...)
		cut.Slices = append(cut.Slices, pool.Pool.Obsolete...)
		for _, slice := range pool.Pool.Slices {
			for i := range slice.Spec.Devices {
				id := allocator.DeviceID{Driver: pool.Pool.Driver, Pool: pool.Pool.Name, Device: slice.Spec.Devices[i].Name}
				for _, holder := range x.site.alloc.Holders(id) {
					name := claimObject(holder.Claim)
					if devices[name] == nil {
						held = append(held, name)
						cut.Claims = append(cut.Claims, holder.Claim)
					}
					devices[name] = append(devices[name], id.Device)
				}
			}
		}
	}
	s.snap = &cut
	s.askedFacts(x, node)
	for i, claim := range cut.Claims {
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("claim %s/%s holds %s", claim.Namespace, claim.Name, sample(devices[held[i]], 4)),
			evidence: Evidence{Object: claimObject(claim), Path: "status.allocation.devices.results"},
			freed:    claim,
		})
	}
	slices.SortFunc(cut.Claims, func(a, b *resourceapi.ResourceClaim) int { return compareObjects(a, b) })
	return s, ctx.Err()
}

func compareObjects(a, b metav1.Object) int {
	return slices.Compare([]string{a.GetNamespace(), a.GetName()}, []string{b.GetNamespace(), b.GetName()})
}

// amended is the scene if only the given facts hold.
func (s *scene) amended(holding []int) (*snapshot.Snapshot, []*resourceapi.ResourceClaim) {
	claims := make([]*resourceapi.ResourceClaim, 0, len(s.claims))
	for _, claim := range s.claims {
		claims = append(claims, claim.DeepCopy())
	}
	freed := map[*resourceapi.ResourceClaim]bool{}
	var dropped []selectorPart
	for i := range s.facts {
		switch f := &s.facts[i]; {
		case slices.Contains(holding, i):
		case f.relax != nil:
			f.relax(claims)
		case f.drops != nil:
			dropped = append(dropped, *f.drops)
		default:
			freed[f.freed] = true
		}
	}
	s.drop(claims, dropped)
	snap := *s.snap
	snap.Claims = slices.DeleteFunc(slices.Clone(s.snap.Claims), func(c *resourceapi.ResourceClaim) bool { return freed[c] })
	return &snap, claims
}

// drop removes parts of selectors and constraints that were emptied.
func (s *scene) drop(claims []*resourceapi.ResourceClaim, dropped []selectorPart) {
	for _, p := range dropped {
		var conjuncts []int
		for _, other := range dropped {
			if other.claim == p.claim && other.request == p.request && other.selector == p.selector {
				conjuncts = append(conjuncts, other.conjunct)
			}
		}
		original := s.claims[p.claim].Spec.Devices.Requests[p.request].Exactly.Selectors[p.selector].CEL.Expression
		claims[p.claim].Spec.Devices.Requests[p.request].Exactly.Selectors[p.selector].CEL = &resourceapi.CELDeviceSelector{
			Expression: s.selectors.compile(original).without(conjuncts),
		}
	}
	for _, claim := range claims {
		claim.Spec.Devices.Constraints = slices.DeleteFunc(claim.Spec.Devices.Constraints, func(c resourceapi.DeviceConstraint) bool {
			return c.MatchAttribute == nil && c.DistinctAttribute == nil
		})
	}
}

// fits says whether the claims fit on the node if only the given facts hold.
// Where that cannot be decided, it is an error.
func (s *scene) fits(ctx context.Context, holding []int) (bool, error) {
	snap, claims := s.amended(holding)
	alloc, err := s.alloc.Amended(ctx, snap)
	if err != nil {
		return false, fmt.Errorf("set up the allocator: %w", err)
	}
	if fits, known := countedFit(ctx, alloc, snap, s.node, claims); known {
		return fits, nil
	}
	hasty, err := allocator.New(ctx, snap, allocator.WithTimeout(patience))
	if err != nil {
		return false, fmt.Errorf("set up the allocator: %w", err)
	}
	switch verdict := hasty.Check(ctx, s.node, claims); verdict.Outcome {
	case allocator.Fits:
		return true, nil
	case allocator.DoesNotFit, allocator.NodeError, allocator.Failed:
		return false, nil
	default:
		return false, fmt.Errorf("check node %s: %w", s.node.Name, verdict.Err)
	}
}

// conflict finds a minimal set of facts that cannot hold together: leaving out
// any one of them makes the claims fit. It is nil if they do not fit even
// without all of them. The method is QuickXplain (Junker, AAAI 2004); earlier
// facts are preferred.
func (s *scene) conflict(ctx context.Context) ([]int, error) {
	all := make([]int, len(s.facts))
	for i := range all {
		all[i] = i
	}
	if ok, err := s.fits(ctx, nil); err != nil || !ok {
		return nil, err
	}
	chosen, err := s.explain(ctx, nil, false, all)
	if err != nil {
		return nil, err
	}
	// The method takes for granted that giving up a fact never hurts. It may: a
	// selector can fail on a device that was in use before.
	if ok, err := s.fits(ctx, chosen); err != nil || ok {
		return nil, err
	}
	for i := range chosen {
		if ok, err := s.fits(ctx, slices.Delete(slices.Clone(chosen), i, i+1)); err != nil || !ok {
			return nil, err
		}
	}
	return chosen, nil
}

// explain is the recursion of QuickXplain: a minimal part of candidates that
// cannot hold together with background. grown says whether something was added
// to the background since it was last checked.
func (s *scene) explain(ctx context.Context, background []int, grown bool, candidates []int) ([]int, error) {
	if grown {
		ok, err := s.fits(ctx, background)
		if err != nil || !ok {
			return nil, err
		}
	}
	if len(candidates) <= 1 {
		return candidates, nil
	}
	half := len(candidates) / 2
	first, second := candidates[:half], candidates[half:]
	fromSecond, err := s.explain(ctx, slices.Concat(background, first), true, second)
	if err != nil {
		return nil, err
	}
	fromFirst, err := s.explain(ctx, slices.Concat(background, fromSecond), len(fromSecond) > 0, first)
	if err != nil {
		return nil, err
	}
	return slices.Concat(fromFirst, fromSecond), nil
}
