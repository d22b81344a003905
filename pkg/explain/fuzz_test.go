// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// FuzzQuantity holds the arithmetic of capacities against the allocator: one
// device that can be shared, with any capacity and request policy, some of it
// in use, and a claim, or two, for some of the rest. Quantities that are empty
// are not set.
func FuzzQuantity(f *testing.F) {
	for _, seed := range [][]string{
		{"10", "", "", "", "", "", "", "", ""},
		{"10", "3", "4", "", "", "", "", "", ""},
		{"10", "3", "4", "2", "1", "8", "2", "", ""},
		{"80Gi", "10Gi", "20Gi", "5Gi", "1Gi", "40Gi", "1Gi", "", ""},
		{"2", "1500m", "500m", "500m", "250m", "", "250m", "", ""},
		{"2", "1500m", "", "1", "", "", "", "1", "2"},
		{"9223372036854775807", "9223372036854775806", "1", "1", "1", "", "1000", "", ""},
		{"1e30", "1e29", "1", "", "1", "", "1", "", ""},
		{"1", "1u", "1n", "1m", "1u", "", "1u", "", ""},
		{"4", "0", "", "1", "0", "4", "0", "", ""},
		{"4", "-1", "1", "", "", "", "", "1", "4"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], seed[6], seed[7], seed[8], true)
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], seed[6], seed[7], seed[8], false)
	}
	f.Fuzz(func(t *testing.T, total, request, used, standard, low, high, step, first, second string, fractional bool) {
		parsed := map[string]*resource.Quantity{}
		for _, text := range []string{total, request, used, standard, low, high, step, first, second} {
			if len(text) > 40 {
				return
			}
			if q, ok := selector.ParseQuantity(text); ok {
				parsed[text] = &q
			} else if text != "" {
				return
			}
		}
		if parsed[total] == nil {
			return
		}
		if parsed[step] != nil && (parsed[step].Sign() <= 0 || parsed[step].Value() == 0) {
			return // No API server stores it, and no file with it is read.
		}
		capacity := resourceapi.DeviceCapacity{Value: *parsed[total]}
		policy := &resourceapi.CapacityRequestPolicy{Default: parsed[standard]}
		switch {
		case parsed[low] != nil:
			policy.ValidRange = &resourceapi.CapacityRequestPolicyRange{Min: parsed[low], Max: parsed[high], Step: parsed[step]}
		case parsed[first] != nil:
			policy.ValidValues = []resource.Quantity{*parsed[first]}
			if parsed[second] != nil {
				policy.ValidValues = append(policy.ValidValues, *parsed[second])
			}
		}
		if parsed[standard] != nil {
			capacity.RequestPolicy = policy
		}
		shared := tc.Device("gpu-0").Shareable()
		shared.Capacity["memory"] = capacity
		parts := []any{
			tc.Gate("DRAConsumableCapacity", true), tc.Gate("DRAFractionalCapacityRange", fractional), tc.Nodes("n1"), tc.Pool("n1", shared),
			func(s *snapshot.Snapshot) { s.Classes[0].Spec.Selectors = nil },
		}
		if parsed[used] != nil {
			parts = append(parts, tc.Sharing("share", "n1", "gpu-0", "memory", used))
		}
		for i, name := range []string{waiting, waiting + "-2"} {
			parts = append(parts, tc.Claim(name, tc.GPUs("gpu", 1).Change(func(r *resourceapi.ExactDeviceRequest) {
				if parsed[request] != nil {
					r.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": *parsed[request]}}
				}
			})))
			holdAgainstAllocator(t, tc.Cluster(parts...), i+1)
		}
	})
}

// holdAgainstAllocator compares the answers for all claims that wait.
func holdAgainstAllocator(t *testing.T, snap *snapshot.Snapshot, claims int) {
	t.Helper()
	x := surveyed(t, snap)
	alloc, eligible := allocator.Of(x.Cluster), 0
	for i := range x.Claims {
		eligible += x.out.Claims[i].Requests[0].Eligible
	}
	node := snap.Nodes[0]
	list, err := x.ClaimsFor(node)
	if err != nil {
		t.Fatal(err)
	}
	answered := alloc.Check(t.Context(), node, list)
	if fits := answered.Outcome == allocator.Fits; fits && eligible != claims || !fits && claims == 1 && eligible > 0 {
		t.Errorf("the allocator says %s (%v), but %d of %d can have the device: %s", answered.Outcome, answered.Err, eligible, claims, asJSON(x.out.Claims))
	}
	if answer := verdict.CountingAnswer(t.Context(), x.Question, node); answer == decision.Feasible && answered.Outcome != allocator.Fits || answer == decision.Infeasible && answered.Outcome == allocator.Fits {
		t.Errorf("%d claims: the allocator says %s (%v), by counting it is %s", claims, answered.Outcome, answered.Err, answer)
	}
	if answered.Outcome != allocator.Fits {
		return
	}
	capacity := snap.Slices[0].Spec.Devices[0].Capacity["memory"]
	var request *resource.Quantity
	if c := list[0].Spec.Devices.Requests[0].Exactly.Capacity; c != nil {
		request = ptr.To(c.Requests["memory"])
	}
	takes, err := eligibility.ConsumedBy(request, capacity, alloc.Facts.Gates.Enabled("DRAFractionalCapacityRange"))
	if err != nil {
		t.Fatal(err)
	}
	if got := answered.Allocations[0].Devices.Results[0].ConsumedCapacity["memory"]; got.Cmp(takes) != 0 {
		t.Errorf("the allocator takes %s, should take %s", got.String(), takes.String())
	}
}
