// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocators

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestTaintRules gives the trackers of all patch releases random slices and rules, and compares
// which devices get which taints.
func TestTaintRules(t *testing.T) {
	compareTaints(t, trackerPart(), "tainted devices", deviceTaints)
}

// TestEvictions gives the controllers that evict of all patch releases random pods, and
// compares who is evicted when, and for which taints.
func TestEvictions(t *testing.T) {
	compareTaints(t, evictionPart(), "evicted pods", evictions)
}

func compareTaints(t *testing.T, p part, what string, say func(*cluster.Cluster) map[string][]string) {
	releases, random := asked(t)
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			for _, b := range p.buildAll(t, release) {
				questions := make([]any, random)
				for seed := range random {
					snap := randomTaints(uint64(seed)) //nolint:gosec // small
					questions[seed] = map[string]any{"Slices": snap.Slices, "Rules": snap.TaintRules, "Claims": snap.Claims, "Pods": snap.Pods}
				}
				theirs := ask[map[string][]string](t, b, questions)
				for _, patch := range b.apart() {
					t.Run(patch, func(t *testing.T) {
						differences, found := 0, 0
						for seed, said := range theirs {
							snap := randomTaints(uint64(seed)) //nolint:gosec // small
							snap.ServerVersion = "v" + patch
							found += len(said)
							ours := say(cluster.New(snap))
							if reflect.DeepEqual(said, ours) {
								continue
							}
							if differences++; differences <= 10 {
								t.Errorf("seed %d:\n the %s says %v\n the program says %v", seed, p.name, said, ours)
							}
						}
						t.Logf("%s: %d clusters, %d differences, %d %s", strings.Join(b.releases, " "), random, differences, found, what)
					})
				}
			}
		})
	}
}

// deviceTaints returns the taints of each device. A taint that a rule sets has its name.
func deviceTaints(facts *cluster.Cluster) map[string][]string {
	found := map[string][]string{}
	for _, slice := range allSlices(facts) {
		for _, d := range slice.Spec.Devices {
			id := slice.Name + " " + d.Name
			device := &cluster.Device{ID: cluster.DeviceID{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: d.Name}}
			for _, taint := range d.Taints {
				at := "never"
				if taint.TimeAdded != nil {
					at = taint.TimeAdded.UTC().Format(time.RFC3339)
				}
				if rule := facts.Taints.Rule(device, taint); rule != nil {
					taint.Value = rule.Name
				}
				found[id] = append(found[id], fmt.Sprintf("%s=%s:%s %s", taint.Key, taint.Value, taint.Effect, at))
			}
			slices.Sort(found[id])
		}
	}
	return found
}

// evictions returns the reasons for which pods are evicted, and when.
func evictions(facts *cluster.Cluster) map[string][]string {
	found := map[string][]string{}
	for _, pod := range facts.Snapshot.Pods {
		all := facts.Taints.PodEvictions(pod)
		if len(all) == 0 {
			continue
		}
		reasons := map[string]bool{}
		for _, e := range all {
			from := e.Device.String()
			if e.Rule != nil {
				from = "rule " + e.Rule.Name
			}
			reasons[fmt.Sprintf("%s=%s:%s of %s", e.Taint.Key, e.Taint.Value, e.Taint.Effect, from)] = true
		}
		found[pod.Name] = append(slices.Sorted(maps.Keys(reasons)), all[0].At.UTC().Format(time.RFC3339))
	}
	return found
}

// taints makes random taints, and pods that use devices.
type taints struct {
	*rand.Rand
	snap    *snapshot.Snapshot
	devices []cluster.DeviceID
}

func (g *taints) chance(percent int) bool { return g.IntN(100) < percent }

func (g *taints) pick(from ...string) string { return from[g.IntN(len(from))] }

// randomTaints returns a random cluster with taints, rules, claims and pods.
func randomTaints(seed uint64) *snapshot.Snapshot {
	from := fleet.Random(seed).Without(fleet.InvalidPools).Snapshot
	g := &taints{rand.New(rand.NewPCG(seed, 13)), &snapshot.Snapshot{Clock: snapshot.Clock{TakenAt: from.TakenAt}, Nodes: from.Nodes, Slices: from.Slices, Release: snapshot.Release{Gates: map[string]snapshot.Gate{}}}, nil} //nolint:gosec // the same cases each time
	for _, gate := range []string{"DRADeviceTaints", "DRADeviceTaintRules", "DRAExtendedResource"} {
		g.snap.Gates[gate] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
	}
	if g.chance(30) {
		sameNames(g.snap)
	}
	g.devices = []cluster.DeviceID{{Driver: fleet.Driver, Pool: "gone", Device: "dev-00"}}
	for _, s := range g.snap.Slices {
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			g.devices = append(g.devices, cluster.DeviceID{Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: d.Name})
			d.Taints = nil
			for n := range g.IntN(3) {
				d.Taints = append(d.Taints, g.taint(fmt.Sprintf("slice-%d", n)))
			}
		}
	}
	for i := range g.IntN(4) {
		g.rule(fmt.Sprintf("rule-%d", i))
	}
	for i := range 1 + g.IntN(4) {
		g.pod(i)
	}
	return g.snap
}

func (g *taints) taint(value string) resourceapi.DeviceTaint {
	added := metav1.NewTime(g.snap.TakenAt.Add(time.Duration(g.IntN(10)-5) * time.Minute))
	return resourceapi.DeviceTaint{Key: g.pick("x", "y"), Value: value, Effect: resourceapi.DeviceTaintEffect(g.pick("NoSchedule", "NoExecute", "NoExecute", "None")), TimeAdded: &added}
}

// rule adds a rule that selects nothing, all, or by some of driver, pool and device.
func (g *taints) rule(name string) {
	rule := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: resourceapi.DeviceTaintRuleSpec{Taint: g.taint(name)}}
	if g.chance(90) {
		id := g.devices[g.IntN(len(g.devices))]
		rule.Spec.DeviceSelector = &resourceapi.DeviceTaintSelector{Driver: &id.Driver, Pool: &id.Pool, Device: &id.Device}
		if g.chance(50) {
			rule.Spec.DeviceSelector.Driver = nil
		}
		if g.chance(50) {
			rule.Spec.DeviceSelector.Pool = nil
		}
		if g.chance(50) {
			rule.Spec.DeviceSelector.Device = nil
		}
	}
	g.snap.TaintRules = append(g.snap.TaintRules, rule)
}

// pod adds a pod with claims that are its own, shared, of another pod, generated, or for its
// extended resources.
func (g *taints) pod(number int) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d", number), UID: types.UID(fmt.Sprintf("pod-%d", number))}}
	if g.chance(85) {
		pod.Spec.NodeName = g.snap.Nodes[0].Name
	}
	for i := range 1 + g.IntN(3) {
		claim := g.claim(pod, fmt.Sprintf("%s-%d", pod.Name, i))
		entry := corev1.PodResourceClaim{Name: fmt.Sprintf("c%d", i), ResourceClaimName: &claim.Name}
		switch g.IntN(4) {
		case 0:
			if pod.Status.ExtendedResourceClaimStatus == nil {
				pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: claim.Name}
			}
			g.owned(claim, pod)
			continue
		case 1:
			entry.ResourceClaimName, entry.ResourceClaimTemplateName = nil, ptr.To("template")
			if g.chance(90) {
				pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: entry.Name, ResourceClaimName: &claim.Name})
			}
			g.owned(claim, pod)
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, entry)
	}
	g.snap.Pods = append(g.snap.Pods, pod)
}

// owned mostly turns the claim into one generated for a pod.
func (g *taints) owned(claim *resourceapi.ResourceClaim, pod *corev1.Pod) {
	uid := pod.UID
	if g.chance(10) {
		uid = "before"
	}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: uid, Controller: ptr.To(true)}}
}

// claim adds a claim, which is reserved for a pod, mostly.
func (g *taints) claim(pod *corev1.Pod, name string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	if g.chance(90) {
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		for range 1 + g.IntN(2) {
			id := g.devices[g.IntN(len(g.devices))]
			result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: id.Driver, Pool: id.Pool, Device: id.Device}
			for range g.IntN(3) {
				result.Tolerations = append(result.Tolerations, g.toleration())
			}
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, result)
		}
	}
	if g.chance(90) {
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: types.UID(g.pick(string(pod.UID), string(pod.UID), string(pod.UID), "before"))}}
	}
	g.snap.Claims = append(g.snap.Claims, claim)
	return claim
}

func (g *taints) toleration() resourceapi.DeviceToleration {
	t := resourceapi.DeviceToleration{Key: g.pick("", "x", "y"), Operator: resourceapi.DeviceTolerationOpExists, Effect: resourceapi.DeviceTaintEffect(g.pick("", "NoSchedule", "NoExecute", "NoExecute"))}
	if t.Key != "" && g.chance(30) {
		t.Operator, t.Value = resourceapi.DeviceTolerationOpEqual, g.pick("slice-0", "rule-0", "")
	}
	if g.chance(70) {
		t.TolerationSeconds = ptr.To(int64(g.IntN(500) - 50))
	}
	return t
}
