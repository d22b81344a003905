// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// hide returns the snapshot as seen by somebody who sees only some claims.
func hide(snap *snapshot.Snapshot, hidden func(*resourceapi.ResourceClaim) bool) *snapshot.Snapshot {
	seen := *snap
	seen.Claims = nil
	for _, claim := range snap.Claims {
		if !hidden(claim) {
			seen.Claims = append(seen.Claims, claim)
		}
	}
	seen.Gaps = append([]snapshot.Gap{{Resource: snapshot.ResourceClaims, Reason: "hidden by the test"}}, snap.Gaps...)
	return &seen
}

// statusOf returns what the controller of Kubernetes v1.37.1 tells about all pools of a
// snapshot, by the rules of the documentation of PoolStatus.
func statusOf(t *testing.T, snap *snapshot.Snapshot) *resourcev1alpha3.ResourcePoolStatusRequest {
	t.Helper()
	v := takeOf(t, snap)
	request := &resourcev1alpha3.ResourcePoolStatusRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Status: &resourcev1alpha3.ResourcePoolStatusRequestStatus{},
	}
	for _, pool := range v.cluster.Pools.All() {
		status := resourcev1alpha3.PoolStatus{Driver: pool.Driver, PoolName: pool.Name, Generation: pool.Generation}
		if int64(len(pool.Slices)) < pool.Expected {
			status.ValidationError = ptr.To("PoolIncomplete: by the test")
			request.Status.Pools = append(request.Status.Pools, status)
			continue
		}
		used, consumed := map[string]bool{}, map[resourceapi.QualifiedName]resource.Quantity{}
		for _, claim := range snap.Claims {
			if claim.Status.Allocation == nil {
				continue
			}
			for _, r := range claim.Status.Allocation.Devices.Results {
				if r.Driver != pool.Driver || r.Pool != pool.Name || ptr.Deref(r.AdminAccess, false) {
					continue
				}
				used[r.Device] = true
				for name, quantity := range r.ConsumedCapacity {
					sum := consumed[name]
					sum.Add(quantity)
					consumed[name] = sum
				}
			}
		}
		total, unavailable, partial, shareable := 0, 0, 0, false
		summary := &resourcev1alpha3.ShareableSummaryStatus{}
		for _, d := range devicesOf(pool) {
			total++
			if keepsAway(&d) {
				unavailable++
			}
			if !ptr.Deref(d.AllowMultipleAllocations, false) {
				continue
			}
			shareable = true
			if used[d.Name] {
				partial++
			}
			for name := range d.Capacity {
				summary.Capacity = append(summary.Capacity, resourcev1alpha3.ShareableCapacityStatus{Name: string(name), Consumed: ptr.To(consumed[name])})
			}
		}
		status.TotalDevices, status.AllocatedDevices = ptr.To(int32(total)), ptr.To(int32(len(used)))
		status.UnavailableDevices = ptr.To(int32(unavailable))
		status.AvailableDevices = ptr.To(max(0, int32(total-len(used)-unavailable)))
		if shareable {
			summary.PartiallyAvailableDevices = ptr.To(int32(partial))
			status.ShareableSummary = summary
		}
		request.Status.Pools = append(request.Status.Pools, status)
	}
	return request
}

// TestBoundsHold hides claims of random clusters. What is reported then, with and
// without the cluster's own counts, must agree with the truth.
func TestBoundsHold(t *testing.T) {
	reported := map[string]int{}
	for seed := range uint64(1500) {
		c := fleet.Random(seed)
		random := rand.New(rand.NewPCG(seed, 1))
		secret := map[string]bool{}
		for _, claim := range c.Snapshot.Claims {
			secret[claim.Namespace+"/"+claim.Name] = random.IntN(2) == 0
		}
		seen := hide(c.Snapshot, func(claim *resourceapi.ResourceClaim) bool { return secret[claim.Namespace+"/"+claim.Name] })
		truth := takeOf(t, c.Snapshot)
		bounds := takeOf(t, seen)
		counted := *seen
		counted.PoolStatuses = []*resourcev1alpha3.ResourcePoolStatusRequest{statusOf(t, c.Snapshot)}
		asked := New(bounds.cluster.Amended(&counted))

		for i, pool := range truth.cluster.Pools.All() {
			if overcommitted(truth, i) {
				continue
			}
			is := tallyOf(truth.eligible, truth.counter.plain, pool)
			want, _ := count(truth.notRead, &is, known{})
			for _, v := range []*Inventory{bounds, asked} {
				pool := v.cluster.Pools.All()[i]
				t2 := tallyOf(v.eligible, v.counter.plain, pool)
				var k known
				if status, ok := v.counter.statuses()[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}]; ok {
					k = v.counter.learn(&status, pool, &t2)
				}
				// Devices that are gone count as in use, which is documented.
				if k.claims && truth.counter.gone()[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}] > 0 {
					continue
				}
				got, from := count(v.notRead, &t2, k)
				reported[fmt.Sprintf("%s, bound: %v", from, got.FreeIsUpperBound)]++
				if err := holds(want, got); err != nil {
					t.Fatalf("seed %d, pool %s, counts from %s: %v\ntruth %+v\ntold  %+v", seed, pool.Name, from, err, want, got)
				}
			}
			for j, d := range devicesOf(pool) {
				state, _ := deviceState(truth.eligible, &d)
				other := devicesOf(bounds.cluster.Pools.All()[i])[j]
				if visible, _ := deviceState(bounds.eligible, &other); visible != state && !bounds.notRead.uncertain(visible) {
					t.Fatalf("seed %d, device %s: %s for certain, in truth %s", seed, d.ID, visible, state)
				}
			}
		}
	}
	for _, kind := range []string{"VisibleClaims, bound: true", "ResourcePoolStatusRequest, bound: false", "ResourcePoolStatusRequest, bound: true"} {
		if reported[kind] < 30 {
			t.Errorf("only %d pools were of kind %q: %v", reported[kind], kind, reported)
		}
	}
	t.Logf("%v", reported)
}

// overcommitted reports whether more is in use of a pool than there is, which no
// scheduler brings about, but the random clusters do.
func overcommitted(v *Inventory, pool int) bool {
	p := v.cluster.Pools.All()[pool]
	if v.cluster.Partitions.Use(p).Overcommitted != nil {
		return true
	}
	for _, d := range devicesOf(p) {
		if len(d.ConsumesCounters) > 0 && v.cluster.Gates.Enabled("DRADeviceCompatibilityGroups") && len(d.ConsumesCounters[0].CompatibilityGroups) > 0 {
			return true
		}
	}
	return false
}

func holds(truth, reported api.DeviceCounts) error {
	for name, n := range map[string][2]int{
		"total": {truth.Total, reported.Total}, "free": {truth.Free, reported.Free}, "allocated": {truth.Allocated, reported.Allocated},
		"shared": {truth.Shared, reported.Shared}, "blocked": {truth.Blocked, reported.Blocked}, "tainted": {truth.Tainted, reported.Tainted},
		"unusable": {truth.Unusable, reported.Unusable}, "taintedInUse": {truth.TaintedInUse, reported.TaintedInUse}, "available": {truth.Available, reported.Available},
	} {
		ok := n[0] == n[1]
		switch reported.Bounds[name] {
		case api.BoundAtLeast:
			ok = n[1] <= n[0]
		case api.BoundAtMost:
			ok = n[1] >= n[0]
		case api.BoundUnknown:
			ok = true
		}
		if !ok {
			return fmt.Errorf("%d %s (%s), in truth %d", n[1], name, reported.Bounds[name], n[0])
		}
	}
	return nil
}

// TestHiddenClaims says what can be known of one pool in several situations.
func TestHiddenClaims(t *testing.T) {
	full := take(t, plainPools)
	all := func(*resourceapi.ResourceClaim) bool { return true }
	web := func(claim *resourceapi.ResourceClaim) bool { return claim.Namespace == "web" }
	status := statusOf(t, full.cluster.Snapshot)
	atMost, atLeast := api.BoundAtMost, api.BoundAtLeast
	for name, test := range map[string]struct {
		hidden func(*resourceapi.ResourceClaim) bool
		status bool
		want   api.DeviceCounts
	}{
		"nothing is seen": {hidden: all, want: api.DeviceCounts{
			Total: 8, Free: 6, Tainted: 2, Available: 6, FreeIsUpperBound: true,
			Bounds: map[string]api.Bound{"free": atMost, "available": atMost, "tainted": atMost, "taintedInUse": atLeast, "allocated": atLeast, "shared": atLeast, "unhealthy": atLeast},
		}},
		// The cluster counts gpu-9 as allocated, which no slice has any more.
		"the cluster counts": {hidden: all, status: true, want: api.DeviceCounts{
			Total: 8, Free: 4, Allocated: 3, Shared: 1, Tainted: 2, Available: 4, FreeIsUpperBound: true,
			Bounds: map[string]api.Bound{"free": atMost, "available": atMost, "tainted": atMost, "taintedInUse": atLeast, "unhealthy": atLeast},
		}},
		"what matters is seen": {hidden: web, want: api.DeviceCounts{
			Total: 8, Free: 4, Allocated: 2, Shared: 1, Tainted: 1, Unhealthy: 1, Gone: 1, TaintedInUse: 1, Available: 4, FreeIsUpperBound: true,
			Bounds: map[string]api.Bound{"free": atMost, "available": atMost, "tainted": atMost, "taintedInUse": atLeast, "allocated": atLeast, "shared": atLeast, "unhealthy": atLeast},
		}},
		"the cluster counts no more": {hidden: web, status: true, want: api.DeviceCounts{
			Total: 8, Free: 4, Allocated: 2, Shared: 1, Tainted: 1, Unhealthy: 1, Gone: 1, TaintedInUse: 1, Available: 4,
			Bounds: map[string]api.Bound{"unhealthy": atLeast},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := hide(full.cluster.Snapshot, test.hidden)
			if test.status {
				seen.PoolStatuses = []*resourcev1alpha3.ResourcePoolStatusRequest{status}
			}
			pool := poolsOf(t, takeOf(t, seen))["a"]
			if diff := cmp.Diff(test.want, pool.Devices); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, capacity := range pool.Capacity {
				// The cluster tells what all claims consume.
				if capacity.ConsumedIsLowerBound == test.status {
					t.Errorf("capacity %+v", capacity)
				}
			}
		})
	}
}

// TestHiddenTaintRules makes free devices uncertain, unless the cluster counts
// as many unavailable ones as can be seen.
func TestHiddenTaintRules(t *testing.T) {
	snap := *take(t, plainPools).cluster.Snapshot
	snap.Gaps = append([]snapshot.Gap{{Resource: snapshot.ResourceTaintRules}}, snap.Gaps...)
	v := takeOf(t, &snap)
	pool := poolsOf(t, v)["a"]
	want := map[string]api.Bound{"free": api.BoundAtMost, "available": api.BoundAtMost, "tainted": api.BoundAtLeast, "taintedInUse": api.BoundAtLeast}
	if diff := cmp.Diff(want, pool.Devices.Bounds); diff != "" || pool.CountsFrom != api.CountsFromClaims {
		t.Errorf("counts from %s, bounds -want +got:\n%s", pool.CountsFrom, diff)
	}
	if len(v.NotRead()) != 1 {
		t.Errorf("said %q", v.NotRead())
	}
	snap.PoolStatuses = []*resourcev1alpha3.ResourcePoolStatusRequest{statusOf(t, &snap)}
	if pool := poolsOf(t, takeOf(t, &snap))["a"]; len(pool.Devices.Bounds) > 0 {
		t.Errorf("bounds %v", pool.Devices.Bounds)
	}
}

// TestDifferences compares the cluster's counts with the counts from all claims.
func TestDifferences(t *testing.T) {
	full := take(t, plainPools)
	status := statusOf(t, full.cluster.Snapshot)
	differences := func(change func(*resourcev1alpha3.PoolStatus)) []string {
		snap, request := *full.cluster.Snapshot, status.DeepCopy()
		for i := range request.Status.Pools {
			if pool := &request.Status.Pools[i]; pool.PoolName == "a" && change != nil {
				change(pool)
			}
		}
		snap.PoolStatuses = []*resourcev1alpha3.ResourcePoolStatusRequest{request}
		return poolsOf(t, takeOf(t, &snap))["a"].Differences
	}
	for name, test := range map[string]struct {
		change func(*resourcev1alpha3.PoolStatus)
		want   string
	}{
		"other rules": {nil, "the cluster counts 2 available devices, and 4 are free; there are 1 tainted and in use, which it takes off twice, 1 of claims that no slice has any more"},
		"another generation": {
			func(p *resourcev1alpha3.PoolStatus) { p.Generation = 3 },
			"the cluster counts 8 devices of generation 3, the slices have 8 of generation 2: the pool changed in between",
		},
		"another claim": {
			func(p *resourcev1alpha3.PoolStatus) { p.AllocatedDevices = ptr.To[int32](6) },
			"the cluster counts 6 allocated devices, and claims have 4: a claim changed in between",
		},
		"another taint": {
			func(p *resourcev1alpha3.PoolStatus) { p.UnavailableDevices = ptr.To[int32](0) },
			"the cluster counts 0 unavailable devices, and 2 have a taint: a taint changed in between",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{test.want}, differences(test.change)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
