// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"math/rand/v2"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestOneNodeAgrees holds the answer for one node against the allocator, and
// the checks of each device there against the funnel of that node.
func TestOneNodeAgrees(t *testing.T) {
	cases := 800
	if testing.Short() {
		cases = 100
	}
	counts := map[Code]int{}
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		snap := randomCluster(t, random)
		disturb(snap, random)
		alloc, err := allocator.New(t.Context(), snap)
		if err != nil {
			t.Fatal(err)
		}
		claims := []*resourceapi.ResourceClaim{allocator.Defaulted(snap.Claim(namespace, waiting))}
		for _, node := range snap.Nodes {
			target := Options{Kind: KindClaim, Namespace: namespace, Name: waiting, Node: node.Name}
			e, err := ExplainWith(t.Context(), alloc, snap, target)
			if err != nil {
				t.Fatal(err)
			}
			checkSums(t, e)
			wanted := map[allocator.Outcome]Verdict{
				allocator.Fits: Fits, allocator.DoesNotFit: DoesNotFit, allocator.NodeError: DoesNotFit, allocator.Failed: Error,
			}[alloc.Check(t.Context(), node, claims).Outcome]
			if e.Verdict != wanted {
				t.Fatalf("seed %d, %s: the verdict is %s, the allocator's is %s\n%s", seed, node.Name, e.Verdict, wanted, asJSON(e))
			}
			request := e.Claims[0].Requests[0]
			reasons := map[string]Code{}
			for _, rejection := range request.Rejected {
				for _, id := range rejection.Devices {
					reasons[id] = rejection.Code
				}
			}
			for _, id := range request.EligibleDevices {
				reasons[id] = ""
			}
			for id, code := range reasons {
				counts[code]++
				target.Device = id
				e, err := ExplainWith(t.Context(), alloc, snap, target)
				if err != nil {
					t.Fatal(err)
				}
				if got := firstFailed(e.Device.Requests[0].Checks); got != code {
					t.Fatalf("seed %d, %s: device %s fails %q first, in the funnel it is %q\n%s\n%s", seed, node.Name, id, got, code, asJSON(e.Device), asJSON(snap.Slices))
				}
			}
		}
	}
	t.Log(counts)
}

// disturb makes pools incomplete or obsolete in part, or the class choosy.
func disturb(snap *snapshot.Snapshot, random *rand.Rand) {
	switch random.IntN(8) {
	case 0:
		snap.Slices[0].Spec.Pool.ResourceSliceCount++
	case 1:
		newer := snap.Slices[0].DeepCopy()
		newer.Name += "-newer"
		newer.Spec.Pool.Generation++
		newer.Spec.Devices = newer.Spec.Devices[1:]
		snap.Slices = append(snap.Slices, newer)
	case 2:
		newer := snap.Slices[0].DeepCopy()
		newer.Name += "-elsewhere"
		newer.Spec.Pool.Generation++
		newer.Spec.NodeName, newer.Spec.PerDeviceNodeSelection = ptr.To("n2"), nil
		snap.Slices = append(snap.Slices, newer)
	case 3:
		snap.Classes[0].Spec.Selectors = celSelectors(`device.attributes["gpu.example.com"].model == "A"`)
	case 4:
		snap.Classes[0].Spec.Selectors = celSelectors(`device.capacity["gpu.example.com"].memory.compareTo(quantity("0")) > 0`)
	}
}

func firstFailed(checks []DeviceCheck) Code {
	at := slices.IndexFunc(checks, func(c DeviceCheck) bool { return c.Outcome == CheckFailed })
	if at < 0 {
		return ""
	}
	return checks[at].Code
}
