// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// everythingOff turns all feature gates off.
func everythingOff(s *snapshot.Snapshot) {
	for _, name := range fleet.AllGates() {
		tc.Gate(name, false)(s)
	}
}

// TestFound covers what random clusters brought to light.
func TestFound(t *testing.T) {
	stepOfZero := tc.Device("gpu-0", "memory:=4").Shareable().Change(func(d *resourceapi.Device) {
		zero, one := resource.MustParse("0"), resource.MustParse("1")
		memory := d.Capacity["memory"]
		memory.RequestPolicy = &resourceapi.CapacityRequestPolicy{
			Default: &one, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &zero, Step: &zero},
		}
		d.Capacity["memory"] = memory
	})
	tests := map[string]struct {
		cluster  []any
		outcome  allocator.Outcome
		answer   decision.Answer
		eligible int
	}{
		"the stable allocator hides from selectors that a device can be shared": {
			cluster: []any{everythingOff, tc.Nodes("n1"), tc.Pool("n1", tc.Device("gpu-0").Shareable()), tc.Claim(waiting, tc.GPUs("gpu", 1, "device.allowMultipleAllocations"))},
			outcome: allocator.DoesNotFit, answer: decision.Infeasible,
		},
		"all devices, where a pool has newer slices elsewhere": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...),
				tc.Pool("n1", tc.Devices(1)...).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Name, s.Spec.Pool.ResourceSliceCount = "moved", 2 }),
				tc.Pool("n2", tc.Devices(1)...).Change(func(s *resourceapi.ResourceSlice) {
					s.Spec.NodeName = ptr.To("n2")
					s.Spec.Pool.Name, s.Spec.Pool.Generation = "moved", 2
				}),
				tc.Claim(waiting, tc.GPUs("gpu", 0).All()),
			},
			outcome: allocator.Fits, answer: decision.Feasible, eligible: 2,
		},
		"devices in use whose compatibility groups have nothing in common": {
			cluster: []any{
				tc.Gate("DRADeviceCompatibilityGroups", true), tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "units=8"),
				tc.Pool("n1", tc.Device("a").Consuming("board", "units=1").InGroups("g"), tc.Device("b").Consuming("board", "units=1").InGroups("h"), tc.Device("c").Consuming("board", "units=1")).Of(2),
				tc.Serving("one", "n1", "a"), tc.Serving("two", "n1", "b"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			outcome: allocator.DoesNotFit, answer: decision.Infeasible,
		},
		"a step of zero": {
			cluster: []any{tc.Gate("DRAConsumableCapacity", true), tc.Nodes("n1"), tc.Pool("n1", stepOfZero), tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("memory", "2"))},
			outcome: allocator.Failed, answer: decision.Infeasible,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			x := surveyed(t, tc.Cluster(test.cluster...))
			node := x.Reach.Candidates[0]
			claims, err := x.ClaimsFor(node)
			if err != nil {
				t.Fatal(err)
			}
			if verdict := allocator.Of(x.Cluster).Check(t.Context(), node, claims); verdict.Outcome != test.outcome {
				t.Errorf("the allocator says %s (%v), want %s", verdict.Outcome, verdict.Err, test.outcome)
			}
			if answer := verdict.CountingAnswer(t.Context(), x.Question, node); answer != test.answer {
				t.Errorf("by counting it is %s, want %s", answer, test.answer)
			}
			if eligible := x.out.Claims[0].Requests[0].Eligible; eligible != test.eligible {
				t.Errorf("%d devices are eligible, want %d", eligible, test.eligible)
			}
		})
	}
}

// surveyed returns a builder about all claims that wait, with funnels.
func surveyed(tb testing.TB, snap *snapshot.Snapshot) *builder {
	tb.Helper()
	facts := cluster.New(snap)
	s := &target.Target{Options: target.Options{Object: api.Ref(api.KindClaim, "", "")}}
	for _, c := range snap.Claims {
		if c.Status.Allocation == nil {
			s.Claims = append(s.Claims, cluster.PodClaim{Claim: c})
		}
	}
	v, err := verdict.Decide(tb.Context(), facts, s, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if v.Settled != nil {
		tb.Fatal(v.Settled.Cause)
	}
	x := newBuilder(v, reasonsOnly)
	describeClaims(x.Verdict, x.out)
	describeFunnels(x.Verdict, x.out)
	return x
}
