// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// channels are sets of gates that select each of the implementations, with
// everything on that they know, and with nothing on.
func channels() map[string]gates {
	return map[string]gates{
		"nothing":      nil,
		"stable":       stableGates(),
		"incubating":   incubatingGates(),
		"experimental": experimentalGates(),
	}
}

// randomCluster makes up a small cluster with all that can happen to pools.
// Each device has an attribute "id" that no other device has.
func randomCluster(rng *rand.Rand, gates gates) *snapshot.Snapshot {
	objects := []any{gates, class(classA, driverA), class(classB, driverB)}
	chance := func(percent int) bool { return rng.IntN(100) < percent }
	pick := func(options ...string) string { return options[rng.IntN(len(options))] }
	for i := range 3 {
		objects = append(objects, node(fmt.Sprintf("node-%d", i+1), "zone="+pick("a", "b")))
	}
	id := 0
	var names []string
	for p := range 1 + rng.IntN(5) {
		driver, pool := pick(driverA, driverB), fmt.Sprintf("pool-%d", p)
		home := pick(node1, node2, "node-3")
		count := 1 + rng.IntN(3)
		withCounters := chance(40)
		for s := range count {
			sl := slice(fmt.Sprintf("%d-%s-%d", rng.IntN(10), pool, s), driver, pool)
			perDevice := false
			switch rng.IntN(10) {
			case 0:
				sl = sl.onAllNodes()
			case 1, 2:
				sl = sl.onNodesWith("zone", pick("a", "b"))
			case 3:
				sl, perDevice = sl.perDevice(), true
			case 4:
				sl = sl.onNode(pick(node1, node2, "node-3"))
			default:
				sl = sl.onNode(home)
			}
			if withCounters && s == 0 {
				sl = sl.withCounters("set", "memory=3")
				if chance(10) {
					sl = sl.withCounters("set", "memory=3")
				}
			} else {
				for range 1 + rng.IntN(3) {
					id++
					name := fmt.Sprintf("d%d", id)
					if chance(4) && len(names) > 0 {
						name = names[len(names)-1]
					}
					names = append(names, name)
					d := device(name, fmt.Sprintf("id=%d", id), "kind="+pick("x", "y"), "memory:=8Gi")
					if withCounters && chance(70) || chance(2) {
						d = d.consuming("set", "memory="+pick("1", "2"))
					}
					if chance(4) {
						d = d.inGroups(pick("g", "h"))
					}
					if chance(10) {
						d = d.tainted("broken", resourceapi.DeviceTaintEffectNoSchedule)
					}
					if chance(20) {
						d = d.shareable()
					}
					if chance(8) {
						d = d.bindingOn("ready")
					}
					if perDevice {
						d = d.onNode(pick(node1, node2, "node-3"))
					}
					sl.Spec.Devices = append(sl.Spec.Devices, d.Device)
					if chance(20) {
						full := strings.Join([]string{driver, pool, name}, "/")
						c := claim(fmt.Sprintf("holder-%d", id))
						switch {
						case chance(20):
							c = c.holding(full, forAdmin)
						case d.AllowMultipleAllocations != nil:
							c = c.holding(full, asShare(fmt.Sprint(id), pick("", "memory"), "4Gi"))
						default:
							c = c.holding(full)
						}
						objects = append(objects, c)
					}
				}
			}
			expected := count
			if chance(4) {
				expected++
			}
			sl = sl.of(int64(expected))
			if chance(8) {
				sl = sl.generation(2)
			}
			objects = append(objects, sl)
		}
	}
	return cluster(objects...)
}

// randomClaims never runs into an error that depends on the order of pools,
// which is random in the stable channel.
func randomClaims(rng *rand.Rand) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for i := range 1 + rng.IntN(2) {
		c := claim(fmt.Sprintf("claim-%d", i))
		all := false
		for j := range 1 + rng.IntN(2) {
			class, driver := classA, driverA
			if rng.IntN(2) == 0 {
				class, driver = classB, driverB
			}
			kind := fmt.Sprintf("device.attributes[%q].kind == %q", driver, string("xy"[rng.IntN(2)]))
			r := request(fmt.Sprintf("r%d", j), class, int64(1+rng.IntN(3)))
			switch rng.IntN(8) {
			case 0:
				r, all = requestAll(r.Name, class, kind), true
			case 1:
				r = firstAvailable(r.Name, request("first", class, 3, kind), request("second", class, 1))
			case 2:
				r = r.withAdminAccess()
			case 3:
				r = r.withCapacity("memory", "4Gi")
			case 4:
				r = r.tolerating("broken")
			case 5:
				r = request(r.Name, class, 1, kind)
			}
			c = c.withRequests(r)
		}
		if !all && rng.IntN(3) == 0 {
			c = c.matching(driverA + "/kind")
		}
		claims = append(claims, c.ResourceClaim)
	}
	return claims
}

// plain asks upstream without anything of ours in between but the data.
func plain(t testing.TB, a *Allocator, snap *snapshot.Snapshot, n *corev1.Node, claims []*resourceapi.ResourceClaim) Verdict {
	t.Helper()
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	upstream, err := structured.NewAllocator(ctx, a.features, a.state.upstream, a.classes, patchedSlices(snap, a.taintRulesEnabled()),
		cel.NewCache(10, cel.Features{EnableConsumableCapacity: a.features.ConsumableCapacity, EnableListTypeAttributes: a.features.ListTypeAttributes}))
	if err != nil {
		t.Fatal(err)
	}
	results, err := upstream.Allocate(ctx, n, claims)
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return Verdict{Outcome: NodeError, Err: err}
	case err != nil:
		return Verdict{Outcome: Failed, Err: err}
	case len(results) != len(claims):
		return Verdict{Outcome: DoesNotFit}
	default:
		return Verdict{Outcome: Fits, Allocations: results}
	}
}

// withoutShareIDs drops what is random in a result.
func withoutShareIDs(results []resourceapi.AllocationResult) []resourceapi.AllocationResult {
	var stripped []resourceapi.AllocationResult
	for i := range results {
		result := results[i].DeepCopy()
		for j := range result.Devices.Results {
			result.Devices.Results[j].ShareID = nil
		}
		stripped = append(stripped, *result)
	}
	return stripped
}

// TestCheckEqualsUpstream holds the verdict for a few pools against that of
// the plain allocator with all slices.
func TestCheckEqualsUpstream(t *testing.T) {
	const clusters = 500
	for channel, gates := range channels() {
		t.Run(channel, func(t *testing.T) {
			seen := map[Outcome]int{}
			for seed := range uint64(clusters) {
				rng := rand.New(rand.NewPCG(seed, 1))
				snap := randomCluster(rng, gates)
				a, err := New(context.Background(), snap)
				if err != nil {
					t.Fatal(err)
				}
				claims := randomClaims(rng)
				for _, n := range snap.Nodes {
					want := plain(t, a, snap, n, claims)
					got := a.Check(context.Background(), n, claims)
					seen[got.Outcome]++
					if got.Outcome != want.Outcome {
						t.Fatalf("seed %d, %s: got %s (%v), upstream %s (%v)", seed, n.Name, got.Outcome, got.Err, want.Outcome, want.Err)
					}
					// The stable channel goes through its pools in random order.
					if a.channel == channelStable {
						continue
					}
					if fmt.Sprint(got.Err) != fmt.Sprint(want.Err) {
						t.Fatalf("seed %d, %s: got error %v, upstream %v", seed, n.Name, got.Err, want.Err)
					}
					if diff := gocmp.Diff(withoutShareIDs(want.Allocations), withoutShareIDs(got.Allocations)); diff != "" {
						t.Fatalf("seed %d, %s (-upstream +got):\n%s", seed, n.Name, diff)
					}
				}
			}
			for _, outcome := range []Outcome{Fits, DoesNotFit, NodeError, Failed} {
				if seen[outcome] < clusters/100 {
					t.Errorf("only %d times %s: the clusters prove little", seen[outcome], outcome)
				}
			}
		})
	}
}

// TestPoolsForEqualsUpstream finds out about the allocator's view of pools
// from outside: it asks for each device by its attribute "id", and for all
// devices of a kind that does not exist, which fails at the first pool that is
// incomplete or invalid.
func TestPoolsForEqualsUpstream(t *testing.T) {
	const clusters = 120
	for channel, gates := range channels() {
		t.Run(channel, func(t *testing.T) {
			for seed := range uint64(clusters) {
				rng := rand.New(rand.NewPCG(seed, 2))
				snap := randomCluster(rng, gates)
				// What has nothing to do with pools would only be in the way.
				snap.Claims = nil
				for _, s := range snap.Slices {
					for i := range s.Spec.Devices {
						s.Spec.Devices[i].Taints = nil
					}
				}
				a, err := New(context.Background(), snap)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range snap.Nodes {
					pools, err := a.PoolsFor(n)
					if err != nil {
						t.Fatal(err)
					}
					comparePools(t, seed, a, snap, n, pools)
				}
			}
		})
	}
}

func comparePools(t *testing.T, seed uint64, a *Allocator, snap *snapshot.Snapshot, n *corev1.Node, pools []*NodePool) {
	t.Helper()
	id := func(d *resourceapi.Device) string { return *d.Attributes["id"].StringValue }
	ours := map[string]bool{}
	problem := ""
	for _, p := range pools {
		for _, d := range p.Devices {
			// These devices are there, but not to be had with the features.
			if len(d.BindingConditions) > 0 && !a.features.DeviceBindingAndStatus ||
				len(d.ConsumesCounters) > 0 && !a.features.PartitionableDevices {
				continue
			}
			ours[id(d.Device)] = true
		}
		if problem == "" && p.Incomplete {
			problem = p.Pool.Driver + "/" + p.Pool.Name + " is currently being updated"
		}
		if problem == "" && p.Invalid != "" {
			problem = p.Pool.Driver + "/" + p.Pool.Name + " is currently invalid"
		}
	}
	var got, want []string
	for _, s := range snap.Slices {
		for i := range s.Spec.Devices {
			device := id(&s.Spec.Devices[i])
			if ours[device] {
				got = append(got, device)
			}
			class := map[string]string{driverA: classA, driverB: classB}[s.Spec.Driver]
			c := claim("c").withRequests(request("r", class, 1, fmt.Sprintf("device.attributes[%q].id == %q", s.Spec.Driver, device)))
			if plain(t, a, snap, n, []*resourceapi.ResourceClaim{c.ResourceClaim}).Outcome == Fits {
				want = append(want, device)
			}
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("seed %d, %s: devices (-upstream +got):\n%s\n%s", seed, n.Name, diff, describePools(pools))
	}
	all := claim("c").withRequests(requestAll("r", classA, "false"))
	verdict := plain(t, a, snap, n, []*resourceapi.ResourceClaim{all.ResourceClaim})
	if (verdict.Outcome == Failed) != (problem != "") {
		t.Fatalf("seed %d, %s: all devices: upstream says %v, but the first problem is %q\n%s", seed, n.Name, verdict.Err, problem, describePools(pools))
	}
	if a.channel != channelStable && problem != "" && !strings.Contains(verdict.Err.Error(), problem) {
		t.Fatalf("seed %d, %s: all devices: upstream says %v, the first problem is %q\n%s", seed, n.Name, verdict.Err, problem, describePools(pools))
	}
	usable := slices.DeleteFunc(slices.Clone(pools), func(p *NodePool) bool { return p.Usable() || len(p.Devices) == 0 })
	if len(usable) > 0 {
		t.Fatalf("seed %d, %s: pools that are not used have devices:\n%s", seed, n.Name, describePools(usable))
	}
}
