// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestDecision holds the decision procedure, and how problems are put to it,
// against the allocator: several claims with several requests, constraints,
// prioritized lists, counters, groups, shares and admin access.
func TestDecision(t *testing.T) {
	cases := 3000
	if testing.Short() {
		cases = 300
	}
	counts := map[string]int{}
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		snap := randomCluster(t, random)
		crowd(snap, random)
		alloc, err := allocator.New(t.Context(), snap, allocator.WithTimeout(2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		x := newInquiry(alloc, snap, allWaiting(snap))
		x.describeClaims()
		if x.refused() {
			continue
		}
		if err := x.survey(); err != nil {
			t.Fatal(err)
		}
		for i := range x.claims {
			if err := x.account(t.Context(), &x.claims[i]); err != nil {
				t.Fatal(err)
			}
		}
		for _, node := range x.site.candidates {
			claims, err := x.claimsFor(node)
			if err != nil {
				t.Fatal(err)
			}
			verdict := alloc.Check(t.Context(), node, claims)
			answer := x.fast(t.Context(), node)
			counts[fmt.Sprint(verdict.Outcome, " ", answer)]++
			switch verdict.Outcome {
			case allocator.Fits:
				if answer == decision.Infeasible {
					t.Fatalf("seed %d, node %s: the allocator fits %s\nclaims %s\nslices %s\ngates %v", seed, node.Name, asJSON(verdict.Allocations), asJSON(snap.Claims), asJSON(snap.Slices), snap.Gates)
				}
			case allocator.DoesNotFit:
				if answer == decision.Feasible {
					t.Fatalf("seed %d, node %s: the allocator finds nothing\nclaims %s\nslices %s\ngates %v", seed, node.Name, asJSON(snap.Claims), asJSON(snap.Slices), snap.Gates)
				}
			default:
			}
		}
	}
	t.Log(counts)
}

// allWaiting asks about all claims that wait, together.
func allWaiting(snap *snapshot.Snapshot) *subject {
	s := &subject{target: Target{Kind: KindClaim}}
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil {
			s.claims = append(s.claims, allocator.PodClaim{Claim: claim})
		}
	}
	return s
}

// crowd turns the waiting claim of a random cluster into something bigger.
func crowd(snap *snapshot.Snapshot, random *rand.Rand) {
	maybe := func(percent int) bool { return random.IntN(100) < percent }
	for _, claim := range snap.Claims {
		if claim.Status.Allocation != nil {
			continue
		}
		base := claim.Spec.Devices.Requests[0]
		for i := range random.IntN(3) {
			r := *base.DeepCopy()
			r.Name = fmt.Sprintf("more-%d", i)
			if maybe(50) {
				r.Exactly.Selectors = nil
			}
			r.Exactly.Count = int64(1 + random.IntN(2))
			r.Exactly.AllocationMode = resourceapi.DeviceAllocationModeExactCount
			if maybe(30) {
				r.FirstAvailable = []resourceapi.DeviceSubRequest{
					alternative("a", int64(1+random.IntN(3))),
					alternative("b", 1, `device.attributes["gpu.example.com"].model == "B"`),
				}
				r.Exactly = nil
			}
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, r)
		}
		if maybe(40) {
			claim.Spec.Devices.Constraints = same("gpu.example.com/model")
		}
		if maybe(30) {
			claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, distinct("gpu.example.com/model")...)
			if maybe(50) {
				last := &claim.Spec.Devices.Constraints[len(claim.Spec.Devices.Constraints)-1]
				last.Requests = []string{claim.Spec.Devices.Requests[len(claim.Spec.Devices.Requests)-1].Name}
			}
		}
		if maybe(30) {
			second := claim.DeepCopy()
			second.Name, second.UID = waiting+"-2", "uid-second"
			snap.Claims = append(snap.Claims, second)
			break
		}
	}
	for _, slice := range snap.Slices {
		for i := range slice.Spec.Devices {
			if maybe(10) {
				slice.Spec.Devices[i].Attributes["model"] = resourceapi.DeviceAttribute{StringValues: []string{"A", "B"}}
			}
			if maybe(10) {
				slice.Spec.Devices[i].Attributes["model"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(1))}
			}
		}
	}
}
