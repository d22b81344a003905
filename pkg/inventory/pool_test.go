// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// plainPools has a pool in each state, and devices in each state.
const plainPools = header + `
---
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {pods: "9"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, spec: {unschedulable: true}, status: {allocatable: {pods: "9"}, conditions: [{type: Ready, status: "False"}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a-1}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 2, resourceSliceCount: 2}
  devices:
  - {name: gpu-0}
  - {name: gpu-1}
  - {name: gpu-2, taints: [{key: broken, effect: NoSchedule}]}
  - {name: gpu-3, taints: [{key: broken, effect: NoSchedule}]}
  - {name: gpu-4, taints: [{key: info, effect: None}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a-2}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 2, resourceSliceCount: 2}
  devices:
  - {name: gpu-5}
  - {name: nic-0, allowMultipleAllocations: true, capacity: {bandwidth: {value: 10G}, slots: {value: "4"}}}
  - {name: nic-1, allowMultipleAllocations: true, capacity: {bandwidth: {value: 30G}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a-0-old}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-9}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: incomplete}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: incomplete, generation: 1, resourceSliceCount: 3}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: invalid}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: invalid, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gone}
spec:
  driver: gpu.example.com
  nodeName: z
  pool: {name: gone, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: not-ready}
spec:
  driver: gpu.example.com
  nodeName: b
  pool: {name: not-ready, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: empty}
spec:
  driver: gpu.example.com
  allNodes: true
  pool: {name: empty, generation: 1, resourceSliceCount: 1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: ml}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices:
      results:
      - {request: r, driver: gpu.example.com, pool: a, device: gpu-0}
      - {request: r, driver: gpu.example.com, pool: a, device: gpu-3}
      - {request: r, driver: gpu.example.com, pool: a, device: gpu-9}
      - {request: r, driver: gpu.example.com, pool: a, device: nic-0, shareID: 6c4e1b2e-0000-4000-8000-000000000001, consumedCapacity: {bandwidth: 4G}}
      - {request: r, driver: gpu.example.com, pool: incomplete, device: gpu-1}
  reservedFor: [{resource: pods, name: train, uid: u}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, namespace: web}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices:
      results:
      - {request: r, driver: gpu.example.com, pool: a, device: gpu-5, adminAccess: true}
      - {request: r, driver: gpu.example.com, pool: a, device: nic-0, shareID: 6c4e1b2e-0000-4000-8000-000000000002, consumedCapacity: {bandwidth: 3G, slots: "1"}}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: ml, uid: u}
spec: {nodeName: a, resourceClaims: [{name: c, resourceClaimName: one}], containers: [{name: main, image: i, resources: {claims: [{name: c}]}}]}
status:
  containerStatuses:
  - name: main
    allocatedResourcesStatus:
    - {name: claim:c, resources: [{resourceID: gpu.example.com/a/gpu-0, health: Unhealthy}]}
`

// what compares only what a case is about.
func what() cmp.Option { return cmpopts.EquateEmpty() }

func TestPoolStatesAndCounts(t *testing.T) {
	v := take(t, plainPools)
	pools := poolsOf(t, v)
	for name, want := range map[string]struct {
		state  api.PoolState
		reason string
		counts api.DeviceCounts
	}{
		// gpu-5 is only looked at by an administrator; gpu-9 is in an obsolete
		// slice; gpu-3 is in use and tainted; that a taint only informs keeps nobody away.
		"a":          {api.PoolStateUsable, "", api.DeviceCounts{Total: 8, Free: 4, Allocated: 2, Shared: 1, Tainted: 1, Gone: 1, TaintedInUse: 1, Available: 4}},
		"incomplete": {api.PoolStateIncomplete, "1 of 3 slices", api.DeviceCounts{Total: 2, Allocated: 1, Unusable: 1}},
		"invalid":    {api.PoolStateInvalid, "gpu-0", api.DeviceCounts{Total: 2, Unusable: 2}},
		"gone":       {api.PoolStateNodeGone, "node z does not exist", api.DeviceCounts{Total: 1, Unusable: 1}},
		// Its node is cordoned, too.
		"not-ready": {api.PoolStateUsable, "", api.DeviceCounts{Total: 1, Free: 1}},
		"empty":     {api.PoolStateEmpty, "no devices", api.DeviceCounts{}},
	} {
		pool := pools[name]
		if pool.State != want.state || !strings.Contains(pool.Reason, want.reason) {
			t.Errorf("pool %s: %s (%s), want %s (%s)", name, pool.State, pool.Reason, want.state, want.reason)
		}
		counts := pool.Devices
		counts.Unhealthy = 0
		if diff := cmp.Diff(want.counts, counts, what()); diff != "" {
			t.Errorf("pool %s (-want +got):\n%s", name, diff)
		}
		if pool.CountsFrom != api.CountsFromClaims || pool.ClusterCounts != nil {
			t.Errorf("pool %s: counts from %s, %v", name, pool.CountsFrom, pool.ClusterCounts)
		}
	}
	a := pools["a"]
	if a.Node != "a" || a.Generation != 2 || a.Slices != 2 || a.Declared != 2 || a.Obsolete != 1 {
		t.Errorf("pool a: %+v", a)
	}
	if pools["empty"].Node != "" {
		t.Errorf("pool empty is for all nodes, got %q", pools["empty"].Node)
	}
}

func TestPoolHealth(t *testing.T) {
	if n := poolsOf(t, take(t, plainPools))["a"].Devices.Unhealthy; n != 1 {
		t.Errorf("got %d unhealthy devices, want the one that the kubelet calls so", n)
	}
}

// TestPoolCapacity sums up both NICs, the shares of the one, and leaves out
// devices that are not shared.
func TestPoolCapacity(t *testing.T) {
	want := []api.Capacity{
		{Name: "gpu.example.com/bandwidth", Total: "40G", Consumed: "7G", Available: "33G", ConsumedPercent: 18},
		{Name: "gpu.example.com/slots", Total: "4", Consumed: "1", Available: "3", ConsumedPercent: 25},
	}
	if diff := cmp.Diff(want, poolsOf(t, take(t, plainPools))["a"].Capacity); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSliceStates(t *testing.T) {
	got := map[string]string{}
	for _, s := range take(t, plainPools).Slices() {
		got[s.Name] = fmt.Sprintf("%s %d/%d %s", s.State, s.Free, s.Devices, s.Reason)
	}
	want := map[string]string{
		"a-0-old":    "Obsolete 0/2 generation 1, the pool is at 2",
		"a-1":        "Current 2/5 ",
		"a-2":        "Current 2/3 ",
		"incomplete": "Incomplete 0/2 1 of 3 slices",
		"gone":       "NodeGone 0/1 node z does not exist",
		// Its node is cordoned, too.
		"not-ready": "NodeNotReady 1/1 node b is not ready",
		"empty":     "Empty 0/0 no devices",
	}
	invalid := got["invalid"]
	delete(got, "invalid")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.HasPrefix(invalid, "Invalid 0/2 ") || !strings.Contains(invalid, "gpu-0") {
		t.Errorf("slice invalid: %s", invalid)
	}
}

// partitionedPool returns two cards with a partition of 7 units, two of 3 and six of 1
// each.
func partitionedPool(attribute bool, held ...string) string {
	var b strings.Builder
	b.WriteString(header + "---\n{apiVersion: v1, kind: Node, metadata: {name: a}}\n---\n")
	b.WriteString("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: a-counters}\nspec:\n  driver: gpu.example.com\n  nodeName: a\n" +
		"  pool: {name: a, generation: 1, resourceSliceCount: 2}\n  sharedCounters:\n")
	for card := range 2 {
		fmt.Fprintf(&b, "  - {name: card-%d, counters: {units: {value: \"7\"}}}\n", card)
	}
	b.WriteString("---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: a-devices}\nspec:\n  driver: gpu.example.com\n  nodeName: a\n" +
		"  pool: {name: a, generation: 1, resourceSliceCount: 2}\n")
	if attribute {
		b.WriteString("  partitionTypeAttribute: gpu.example.com/profile\n")
	}
	b.WriteString("  devices:\n")
	for card := range 2 {
		for _, kind := range []struct{ units, count int }{{7, 1}, {3, 2}, {1, 6}} {
			for i := range kind.count {
				fmt.Fprintf(&b, "  - name: c%d-u%d-%d\n    attributes: {profile: {string: %dg}}\n    consumesCounters: [{counterSet: card-%d, counters: {units: {value: \"%d\"}}}]\n",
					card, kind.units, i, kind.units, card, kind.units)
			}
		}
	}
	for i, device := range held {
		fmt.Fprintf(&b, "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: held-%d, namespace: ml}\n"+
			"spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}\n"+
			"status: {allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: a, device: %s}]}}}\n", i, device)
	}
	return b.String()
}

func TestPoolCounters(t *testing.T) {
	pool := poolsOf(t, take(t, partitionedPool(true, "c0-u3-0", "c0-u1-0", "c1-u7-0")))["a"]
	want := []api.Counter{
		{CounterSet: "card-0", Name: "units", Total: "7", Consumed: "4", Available: "3", ConsumedPercent: 57, UsedBy: []string{"c0-u3-0", "c0-u1-0"}},
		{CounterSet: "card-1", Name: "units", Total: "7", Consumed: "7", Available: "0", ConsumedPercent: 100, UsedBy: []string{"c1-u7-0"}},
	}
	if diff := cmp.Diff(want, pool.Counters); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Of card 0, one of 7 does not fit; of card 1, nothing does.
	counts := api.DeviceCounts{Total: 18, Free: 6, Allocated: 3, Blocked: 9}
	if diff := cmp.Diff(counts, pool.Devices, what()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPartitionsMoreFit compares with what happens if devices of a kind are
// allocated one by one until no more fits.
func TestPartitionsMoreFit(t *testing.T) {
	for name, test := range map[string]struct {
		held []string
		want map[string]int
	}{
		"nothing in use": {nil, map[string]int{"7g": 2, "3g": 4, "1g": 12}},
		"a bit of one":   {[]string{"c0-u1-0"}, map[string]int{"7g": 1, "3g": 4, "1g": 11}},
		"much of one":    {[]string{"c0-u3-0", "c0-u3-1"}, map[string]int{"7g": 1, "3g": 2, "1g": 7}},
		"all of one":     {[]string{"c0-u7-0"}, map[string]int{"7g": 1, "3g": 2, "1g": 6}},
		"all":            {[]string{"c0-u7-0", "c1-u7-0"}, map[string]int{"7g": 0, "3g": 0, "1g": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			v := take(t, partitionedPool(true, test.held...))
			got := map[string]int{}
			for _, p := range poolsOf(t, v)["a"].Partitions {
				if p.Attribute != "gpu.example.com/profile" || p.MoreFit == nil || p.MoreFitIsUpperBound {
					t.Fatalf("partition %+v", p)
				}
				got[p.Type] = *p.MoreFit
				if one := oneByOne(t, v.cluster.Snapshot, p.Type); one != *p.MoreFit {
					t.Errorf("%d more of %s fit, one by one %d", *p.MoreFit, p.Type, one)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// oneByOne allocates devices of a profile until the allocator finds none.
func oneByOne(t *testing.T, snap *snapshot.Snapshot, profile string) int {
	t.Helper()
	amended := *snap
	amended.Classes = []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "any"}}}
	for n := 0; ; n++ {
		c := cluster.New(&amended)
		claim := &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprintf("next-%d", n), UID: types.UID(fmt.Sprint(n))},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
				Name: "r", Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: "any", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
					Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
						Expression: fmt.Sprintf("device.attributes['gpu.example.com'].profile == %q", profile),
					}}},
				},
			}}}},
		}
		verdict := allocator.Of(c).Check(t.Context(), snap.Nodes[0], []*resourceapi.ResourceClaim{claim})
		if verdict.Outcome == allocator.DoesNotFit {
			return n
		}
		if verdict.Outcome != allocator.Fits {
			t.Fatalf("%s: %v", verdict.Outcome, verdict.Err)
		}
		claim.Status.Allocation = &verdict.Allocations[0]
		amended.Claims = append(append([]*resourceapi.ResourceClaim{}, amended.Claims...), claim)
	}
}

// TestPartitionsWithoutType tells kinds apart by what they take.
func TestPartitionsWithoutType(t *testing.T) {
	var got []string
	for _, p := range poolsOf(t, take(t, partitionedPool(false, "c0-u3-0")))["a"].Partitions {
		got = append(got, fmt.Sprintf("%s%s: %d of %d, %d more", p.Attribute, p.Type, p.Allocated, p.Devices, *p.MoreFit))
	}
	want := []string{"7 units: 0 of 2, 1 more", "3 units: 1 of 4, 3 more", "1 units: 0 of 12, 10 more"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPartitionsMoreThanAClaimTakes covers more room than one claim can have devices.
func TestPartitionsMoreThanAClaimTakes(t *testing.T) {
	var b strings.Builder
	b.WriteString(header + "---\n{apiVersion: v1, kind: Node, metadata: {name: a}}\n---\n")
	b.WriteString("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: counters}\nspec:\n  driver: gpu.example.com\n  nodeName: a\n" +
		"  pool: {name: a, generation: 1, resourceSliceCount: 2}\n  sharedCounters: [{name: card, counters: {units: {value: \"100\"}}}]\n" +
		"---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: devices}\nspec:\n  driver: gpu.example.com\n  nodeName: a\n" +
		"  pool: {name: a, generation: 1, resourceSliceCount: 2}\n  devices:\n")
	for i := range 40 {
		fmt.Fprintf(&b, "  - {name: d%d, consumesCounters: [{counterSet: card, counters: {units: {value: \"1\"}}}]}\n", i)
	}
	b.WriteString("---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaimList, items: []}\n")
	if p := poolsOf(t, take(t, b.String()))["a"].Partitions; len(p) != 1 || p[0].MoreFit == nil || *p[0].MoreFit != 40 {
		t.Errorf("got %+v, want room for 40", p)
	}
}

// TestPartitionsShared covers a partition that can be shared, and of which claims have
// shares already: there is room for more of its own kind only.
func TestPartitionsShared(t *testing.T) {
	v := take(t, header+`
---
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: counters}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: card, counters: {bytes: {value: "9"}, units: {value: "4"}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: devices}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 2}
  devices:
  - {name: two, allowMultipleAllocations: true, capacity: {memory: {value: 8Gi, requestPolicy: {default: 1Gi}}}, consumesCounters: [{counterSet: card, counters: {bytes: {value: "2"}, units: {value: "2"}}}]}
  - {name: one-0, consumesCounters: [{counterSet: card, counters: {bytes: {value: "1"}, units: {value: "2"}}}]}
  - {name: one-1, consumesCounters: [{counterSet: card, counters: {bytes: {value: "1"}, units: {value: "2"}}}]}
  - {name: one-2, consumesCounters: [{counterSet: card, counters: {bytes: {value: "1"}, units: {value: "2"}}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: share, namespace: ml}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
status: {allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: a, device: two, shareID: 6c4e1b2e-0000-4000-8000-000000000001, consumedCapacity: {memory: 1Gi}}]}}}
`)
	got := map[string]int{}
	for _, p := range poolsOf(t, v)["a"].Partitions {
		got[p.Type] = *p.MoreFit
	}
	// A share of the other is no partition of this kind, and takes no units.
	if got["1 bytes, 2 units"] != 1 {
		t.Errorf("got room for %v, want 1 of 2 units", got)
	}
}

// TestPartitionsManyCards covers so many partitions that trying all combinations would take
// for ever.
func TestPartitionsManyCards(t *testing.T) {
	var b strings.Builder
	b.WriteString(header + "---\n{apiVersion: v1, kind: Node, metadata: {name: a}}\n---\n")
	b.WriteString("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: counters}\nspec:\n  driver: gpu.example.com\n  nodeName: a\n" +
		"  pool: {name: a, generation: 1, resourceSliceCount: 2}\n  sharedCounters:\n")
	for card := range 8 {
		fmt.Fprintf(&b, "  - {name: card-%d, counters: {units: {value: \"7\"}}}\n", card)
	}
	b.WriteString("---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: devices}\nspec:\n  driver: gpu.example.com\n  nodeName: a\n" +
		"  pool: {name: a, generation: 1, resourceSliceCount: 2}\n  devices:\n")
	for card := range 8 {
		for i := range 7 {
			fmt.Fprintf(&b, "  - {name: c%d-%d, consumesCounters: [{counterSet: card-%d, counters: {units: {value: \"2\"}}}]}\n", card, i, card)
		}
	}
	b.WriteString("---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaimList, items: []}\n")
	if p := poolsOf(t, take(t, b.String()))["a"].Partitions; len(p) != 1 || p[0].MoreFit == nil || *p[0].MoreFit != 24 {
		t.Errorf("got %+v, want room for 3 on each of 8 cards", p)
	}
}
