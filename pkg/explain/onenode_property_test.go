// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestOneNodeAgrees holds the answer for one node against the allocator, and
// the checks of each device there against the funnel of that node.
func TestOneNodeAgrees(t *testing.T) {
	cases := uint64(300)
	if testing.Short() {
		cases = 50
	}
	compared := map[api.Code]int{}
	for seed := range cases {
		c := fleet.Random(seed)
		want := askPlainly(t.Context(), t, c)
		if want.random || want.verdict == api.Error || want.verdict == api.Blocked {
			// An error ends the attempt for nodes that come later, and a claim that is
			// being deleted the one for all nodes.
			continue
		}
		facts := cluster.New(c.Snapshot)
		for node, outcome := range want.outcomes {
			target := Options{Object: api.Ref(api.KindPod, fleet.Namespace, fleet.Waiting), Node: node}
			e, err := ExplainWith(t.Context(), facts, target)
			if err != nil {
				t.Fatal(err)
			}
			checkSums(t, e)
			if fits := outcome == allocator.Fits; fits != (e.Verdict == api.Fits || e.Verdict == api.Allocated) && e.Verdict != api.Undetermined {
				t.Fatalf("seed %d, %s: the verdict is %s, the allocator's outcome %s\n%s", seed, node, e.Verdict, outcome, asJSON(e))
			}
			for _, claim := range e.Claims {
				for r, request := range claim.Requests {
					if len(e.Claims) == 1 && outcome != unsuitable {
						compareChecks(t, facts, c, target, r, request, compared)
					}
				}
			}
		}
	}
	t.Log(compared)
	for _, code := range []api.Code{"", api.ClassSelectorFalse, api.RequestSelectorFalse, api.DeviceAllocated, api.DeviceTainted, api.CapacityInsufficient, api.CountersExhausted, api.PoolIncomplete} {
		if compared[code] == 0 && !testing.Short() {
			t.Errorf("no device is rejected by %q", code)
		}
	}
}

// compareChecks asks about each device of a node's funnel by itself.
func compareChecks(t *testing.T, facts *cluster.Cluster, c *fleet.Case, target Options, r int, request api.RequestExplanation, compared map[api.Code]int) {
	t.Helper()
	reasons := map[string]api.Code{}
	for _, rejection := range request.Rejected {
		for _, id := range rejection.Devices {
			reasons[id] = rejection.Code
		}
	}
	for _, id := range request.EligibleDevices {
		reasons[id] = ""
	}
	for id, code := range reasons {
		compared[code]++
		target.Device = id
		e, err := ExplainWith(t.Context(), facts, target)
		if err != nil {
			t.Fatal(err)
		}
		if got := firstFailed(e.Device.Requests[r].Checks); got != code {
			t.Fatalf("seed %d, %s, request %s: device %s fails %q first, in the funnel it is %q\n%s", c.Seed, target.Node, request.Name, id, got, code, asJSON(e.Device))
		}
	}
}

func firstFailed(checks []api.DeviceCheck) api.Code {
	at := slices.IndexFunc(checks, func(c api.DeviceCheck) bool { return c.Outcome == api.CheckFailed })
	if at < 0 {
		return ""
	}
	return checks[at].Code
}
