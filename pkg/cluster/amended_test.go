// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// TestAmendedEqualsNew changes random clusters again and again, as plans and gangs do,
// and compares the facts that were derived from those before with the facts that are
// found from nothing.
func TestAmendedEqualsNew(t *testing.T) {
	for seed := range uint64(300) {
		snap := fleet.Random(seed).Snapshot
		g := &changes{Rand: rand.New(rand.NewPCG(seed, 3))}
		first := New(snap)
		before := factsText(first)
		amended := first
		for step := range 12 {
			snap = g.change(snap, amended)
			if g.IntN(3) > 0 {
				// Else what was not asked for has to be caught up with later.
				factsText(amended)
			}
			amended = amended.Amended(snap)
			if step%3 > 0 {
				continue
			}
			if diff := gocmp.Diff(factsText(New(snap)), factsText(amended)); diff != "" {
				t.Fatalf("seed %d, step %d (-new +amended):\n%s", seed, step, diff)
			}
		}
		if diff := gocmp.Diff(before, factsText(first)); diff != "" {
			t.Fatalf("seed %d: the cluster at the start was changed (-before +after):\n%s", seed, diff)
		}
	}
}

// changes makes random changes.
type changes struct {
	*rand.Rand
	made int
}

func (g *changes) change(snap *snapshot.Snapshot, facts *Cluster) *snapshot.Snapshot {
	var placed []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Spec.NodeName != "" {
			placed = append(placed, pod)
		}
	}
	switch what := g.IntN(10); {
	case what == 0 && len(placed) > 0:
		return whatif.Evict(snap, placed[:1+g.IntN(len(placed))])
	case what == 1 && len(placed) > 0:
		gone := placed[g.IntN(len(placed))]
		return whatif.Leave(snap, func(pod *corev1.Pod) bool { return pod == gone }, func(claim *resourceapi.ResourceClaim, _ *resourceapi.DeviceRequestAllocationResult) bool {
			return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool { return c.UID == gone.UID })
		})
	case what == 2 && len(snap.Claims) > 0:
		at := g.IntN(len(snap.Claims))
		after := *snap
		after.Claims = slices.Delete(slices.Clone(snap.Claims), at, at+1)
		return &after
	default:
		return whatif.Reserve(snap, g.reservation(snap, facts))
	}
}

// reservation gives a new pod some devices, whether or not they are available.
func (g *changes) reservation(snap *snapshot.Snapshot, facts *Cluster) whatif.Reservation {
	g.made++
	name := fmt.Sprintf("%c-%d", "az"[g.IntN(2)], g.made)
	namespace := []string{fleet.Namespace, "aaa", "zzz"}[g.IntN(3)]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{"app": []string{"x", "y"}[g.IntN(2)]}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Ports: []corev1.ContainerPort{{HostPort: g.Int32N(3) * 80}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(g.Int64N(500), resource.DecimalSI), "example.com/gpu": resource.MustParse("1")}},
		}}},
	}
	if g.IntN(2) == 0 {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}}}}
	}
	r := whatif.Reservation{Pod: pod, Node: snap.Nodes[g.IntN(len(snap.Nodes))].Name}
	for i := range g.IntN(3) {
		part := whatif.ClaimReservation{Entry: fmt.Sprint("c", i), Allocation: &resourceapi.AllocationResult{}, Claim: &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(name, "-", i), OwnerReferences: []metav1.OwnerReference{ownerReference(pod)}},
		}}
		if i == 1 {
			part.Entry = ""
			part.Claim.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
			part.Mappings = []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "example.com/gpu"}}
		}
		for range g.IntN(3) {
			part.Allocation.Devices.Results = append(part.Allocation.Devices.Results, g.result(facts))
		}
		r.Claims = append(r.Claims, part)
	}
	return r
}

func (g *changes) result(facts *Cluster) resourceapi.DeviceRequestAllocationResult {
	id := DeviceID{"gone.example.com", "gone", "gone"}
	if devices := facts.Pools.Devices(); len(devices) > 0 {
		id = devices[g.IntN(len(devices))].ID
	}
	result := resourceapi.DeviceRequestAllocationResult{Driver: id.Driver, Pool: id.Pool, Device: id.Device}
	switch g.IntN(4) {
	case 0:
		result.AdminAccess = ptr.To(true)
	case 1:
		g.made++
		result.ShareID = ptr.To(types.UID(fmt.Sprint(g.made)))
		result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": *resource.NewQuantity(g.Int64N(9), resource.DecimalSI)}
	}
	return result
}

// factsText returns all that is derived, for people to compare.
func factsText(c *Cluster) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	ids := slices.SortedFunc(c.Usage.devices(), compareText)
	for _, id := range ids {
		line := fmt.Sprintf("device %s: in use %t, shared %t, %v, held by", id, c.Usage.InUse(id), c.Usage.Shared(id), text(c.Usage.Consumed(id)))
		for _, h := range c.Usage.Holders(id) {
			line += fmt.Sprintf(" %s/%s %v", h.Claim.Namespace, h.Claim.Name, h.Result.ShareID)
		}
		add("%s", line)
	}
	for _, pool := range c.Pools.All() {
		use := c.Partitions.Use(pool)
		held := 0
		for range c.Usage.OfPool(pool.Driver, pool.Name).Holders() {
			held++
		}
		add("pool %s: %d held, groups %v, mixed %v, overcommitted %v", pool.Name, held, use.groups, use.mixed, text(use.Overcommitted))
		for _, counter := range c.Partitions.Counters(pool) {
			add("counter %s", text(counter))
		}
	}
	for _, node := range c.Snapshot.Nodes {
		usage := c.Nodes.usageOf(&corev1.Pod{}, node)
		drop := func(m map[corev1.ResourceName]int64) map[corev1.ResourceName]int64 {
			m = maps.Clone(m)
			maps.DeleteFunc(m, func(_ corev1.ResourceName, n int64) bool { return n == 0 })
			return m
		}
		slices.SortFunc(usage.ports, compareText)
		add("node %s: %d pods, %d cpu, %v, dra %v, ports %v", node.Name, usage.pods, usage.milliCPU, drop(usage.scalar), drop(usage.ofDRA), usage.ports)
		for _, app := range []string{"x", "y"} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: "new", Labels: map[string]string{"app": app}}}
			add("node %s for a pod %s: %s", node.Name, app, text(c.Nodes.Fit(pod, node)))
		}
	}
	for _, pod := range c.Snapshot.Pods {
		claim := c.Claims.existingExtendedClaim(pod)
		add("pod %s/%s: extended %t %v", pod.Namespace, pod.Name, claim != nil, claim == nil || c.Snapshot.Claim(claim.Namespace, claim.Name) == claim)
	}
	return lines
}

func compareText[T fmt.Stringer](a, b T) int {
	if a.String() < b.String() {
		return -1
	}
	return 1
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
