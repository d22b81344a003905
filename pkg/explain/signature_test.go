// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestEquivalent holds the answers for clusters of nodes that are equivalent, or almost,
// against a plain loop that asks the allocator about each node: those that share a verdict, and
// those with too few devices, about which it is not asked.
func TestEquivalent(t *testing.T) {
	cases := 800
	if testing.Short() {
		cases = 80
	}
	// These failed once.
	seeds := []int{480, 1179, 4759, 5652}
	for seed := range cases {
		seeds = append(seeds, seed)
	}
	counts := map[string]int{}
	for _, seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		snap := randomCluster(t, random)
		crowd(snap, random)
		multiply(snap, random)
		x := prepared(t, snap)
		if x == nil {
			continue
		}
		equivalent, verdicts := x.equivalent, x.Checked
		for i, node := range x.Reach.Candidates {
			plain := plainVerdict(t, snap, x, node)
			counts[string(plain.Outcome)]++
			if equivalent[i] != i {
				counts["shared "+string(plain.Outcome)]++
			}
			if plain.Outcome != verdicts[i].Outcome {
				if varies(t, snap, x, node) {
					counts["varies"]++
					break
				}
				t.Fatalf("seed %d: node %s, like %s: %s, but the allocator says %s %v\nclaims %s\nslices %s\ngates %v", seed, node.Name,
					x.Reach.Candidates[equivalent[i]].Name, verdicts[i].Outcome, plain.Outcome, plain.Err, asJSON(snap.Claims), asJSON(snap.Slices), snap.Gates)
			}
			if i > 0 && verdict.TooFewDevices(t.Context(), x.Question, node) {
				counts["too few"]++
				if plain.Outcome != allocator.DoesNotFit {
					t.Fatalf("seed %d: node %s has too few devices, but the allocator says %s %v\nclaims %s\nslices %s\ngates %v", seed, node.Name,
						plain.Outcome, plain.Err, asJSON(snap.Claims), asJSON(snap.Slices), snap.Gates)
				}
			}
			if plain.Outcome == allocator.Failed || plain.Outcome == allocator.TimedOut {
				break
			}
			if plain.Err != nil && verdicts[i].Err.Error() != plain.Err.Error() {
				t.Fatalf("seed %d: node %s, like %s: error %v, but the allocator says %v", seed, node.Name, x.Reach.Candidates[equivalent[i]].Name, verdicts[i].Err, plain.Err)
			}
			want := answerAlone(t, snap, node, plain)
			if got := x.answer(t.Context(), equivalent[i]); got != want {
				t.Fatalf("seed %d: node %s, like %s: %+v, alone it is %+v\nclaims %s\nslices %s\ngates %v", seed, node.Name,
					x.Reach.Candidates[equivalent[i]].Name, x.answer(t.Context(), equivalent[i]), want, asJSON(snap.Claims), asJSON(snap.Slices), snap.Gates)
			}
		}
	}
	t.Log(counts)
	if counts["too few"] < cases {
		t.Errorf("only %d nodes have too few devices", counts["too few"])
	}
	for _, outcome := range []allocator.Outcome{allocator.Fits, allocator.DoesNotFit} {
		if counts["shared "+string(outcome)] < cases/10 {
			t.Errorf("only %d nodes share the verdict %s", counts["shared "+string(outcome)], outcome)
		}
	}
}

// prepared returns a builder about all claims that wait, ready to decide; nil if they are
// refused before any node is tried.
func prepared(t *testing.T, snap *snapshot.Snapshot) *builder {
	t.Helper()
	c := cluster.New(snap)
	v, err := verdict.Decide(t.Context(), c, allWaiting(snap), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.Settled != nil {
		return nil
	}
	x := newBuilder(v, reasonsOnly)
	describeClaims(x.Verdict, x.out)
	if err := x.groupNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x
}

// plainVerdict asks an allocator that knows nothing yet.
func plainVerdict(t *testing.T, snap *snapshot.Snapshot, x *builder, node *corev1.Node) allocator.NodeVerdict {
	t.Helper()
	c := cluster.New(snap)
	claims, err := x.ClaimsFor(node)
	if err != nil {
		t.Fatal(err)
	}
	return allocator.Of(c).Check(t.Context(), node, claims)
}

// varies reports whether the allocator says now this and now that: in the stable channel it takes
// pools in a random order, and where a constraint keeps it from taking all devices, it is an
// error with some devices and none with others.
func varies(t *testing.T, snap *snapshot.Snapshot, x *builder, node *corev1.Node) bool {
	t.Helper()
	outcomes := map[allocator.Outcome]bool{}
	for range 30 {
		outcomes[plainVerdict(t, snap, x, node).Outcome] = true
	}
	return len(outcomes) > 1
}

// answerAlone returns the answer of a builder that has not looked at other nodes.
func answerAlone(t *testing.T, snap *snapshot.Snapshot, node *corev1.Node, plain allocator.NodeVerdict) advice.Answer {
	t.Helper()
	x := prepared(t, snap)
	at := slices.IndexFunc(x.Reach.Candidates, func(n *corev1.Node) bool { return n.Name == node.Name })
	return x.answerOn(t.Context(), node, plain, func() int64 { return x.Score(at) })
}

// multiply adds nodes that are equivalent to the first one, and some that differ in one
// thing. There may be a pool that all of them reach.
func multiply(snap *snapshot.Snapshot, random *rand.Rand) {
	maybe := func(percent int) bool { return random.IntN(100) < percent }
	for _, slice := range snap.Slices {
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].Attributes["root"] = resourceapi.DeviceAttribute{StringValue: ptr.To(fmt.Sprintf("n1-%d", i/2))}
		}
	}
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil && maybe(40) {
			constraint := tc.MatchAttribute("gpu.example.com/root")
			if maybe(30) {
				constraint = tc.DistinctAttribute("gpu.example.com/root")
			}
			claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{constraint}
		}
	}
	if maybe(30) {
		tc.Add(snap, tc.Pool("shared", tc.Device("far-0", "model=A", "root=n1-0"), tc.Device("far-1", "model=B", "root=far")).Change(func(s *resourceapi.ResourceSlice) {
			s.Spec.NodeName = nil
			switch random.IntN(3) {
			case 0:
				s.Spec.AllNodes = ptr.To(true)
			case 1:
				s.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpExists}},
				}}}
			default:
				s.Spec.PerDeviceNodeSelection = ptr.To(true)
				for i := range s.Spec.Devices {
					s.Spec.Devices[i].AllNodes = ptr.To(true)
					if maybe(30) {
						s.Spec.Devices[i].AllNodes, s.Spec.Devices[i].NodeName = nil, ptr.To(fmt.Sprintf("m%d", random.IntN(6)))
					}
				}
			}
			if maybe(20) {
				s.Spec.Pool.ResourceSliceCount = 2
			}
		}))
	}
	for i := range 6 {
		name := fmt.Sprintf("m%d", i)
		node := tc.Nodes(name)[0]
		if maybe(50) {
			node.Labels["rack"] = "r1"
		}
		tc.Add(snap, node)
		cloneNode(snap, "n1", name)
		if maybe(40) {
			mutate(snap, name, random)
		}
	}
	tc.SortObjects(snap.Claims)
	tc.SortObjects(snap.Nodes)
}

// cloneNode gives a node what another one has, devices and claims that hold
// them.
func cloneNode(snap *snapshot.Snapshot, from, to string) {
	for _, s := range snap.Slices {
		if s.Spec.Pool.Name != from {
			continue
		}
		s = s.DeepCopy()
		s.Name = to + s.Name
		s.Spec.Pool.Name = to
		if s.Spec.NodeName != nil {
			s.Spec.NodeName = &to
		}
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			d.Attributes["root"] = resourceapi.DeviceAttribute{StringValue: ptr.To(fmt.Sprintf("%s-%d", to, i/2))}
			if d.NodeName != nil && *d.NodeName == from {
				d.NodeName = &to
			}
		}
		snap.Slices = append(snap.Slices, s)
	}
	for _, c := range snap.Claims {
		if c.Status.Allocation == nil || c.Status.Allocation.Devices.Results[0].Pool != from {
			continue
		}
		c = c.DeepCopy()
		c.Name = to + c.Name
		c.UID = ""
		for i := range c.Status.Allocation.Devices.Results {
			c.Status.Allocation.Devices.Results[i].Pool = to
		}
		snap.Claims = append(snap.Claims, c)
	}
}

// mutate changes one thing about a node.
func mutate(snap *snapshot.Snapshot, node string, random *rand.Rand) {
	var own []*resourceapi.ResourceSlice
	var list []resourceapi.Device
	for _, s := range snap.Slices {
		if s.Spec.Pool.Name == node {
			own = append(own, s)
			if len(s.Spec.Devices) > 0 {
				list = s.Spec.Devices
			}
		}
	}
	d := &list[random.IntN(len(list))]
	switch random.IntN(16) {
	case 0:
		slices.Reverse(list)
	case 1:
		d.Attributes["model"] = resourceapi.DeviceAttribute{StringValue: ptr.To("C")}
	case 2:
		d.Taints = append(d.Taints, resourceapi.DeviceTaint{Key: "x", Effect: resourceapi.DeviceTaintEffectNoSchedule})
	case 3:
		tc.Add(snap, tc.Serving(node+"-more", node, d.Name))
	case 4:
		snap.Claims = slices.DeleteFunc(snap.Claims, func(c *resourceapi.ResourceClaim) bool {
			return c.Status.Allocation != nil && c.Status.Allocation.Devices.Results[0].Pool == node
		})
	case 5:
		for _, s := range own {
			for i := range s.Spec.SharedCounters {
				for name := range s.Spec.SharedCounters[i].Counters {
					s.Spec.SharedCounters[i].Counters[name] = resourceapi.Counter{Value: resource.MustParse("1")}
				}
			}
		}
	case 6:
		d.Capacity["memory"] = randomCapacity(random)
	case 7:
		d.BindingConditions, d.BindingFailureConditions = []string{"ready"}, []string{"broken"}
	case 8:
		delete(d.Attributes, "root")
	case 9:
		delete(d.Attributes, "model")
	case 10:
		d.Attributes["root"] = list[0].Attributes["root"]
	case 11:
		own[0].Spec.Pool.ResourceSliceCount = 3
	case 12:
		d.Attributes["root"] = resourceapi.DeviceAttribute{StringValue: ptr.To("far")}
	case 13:
		d.AllowMultipleAllocations = ptr.To(true)
	case 14:
		list[len(list)-1].Name = list[0].Name
	default:
		tc.ChangeNode(node, func(n *corev1.Node) { n.Status.DeclaredFeatures = []string{"DRAOptionalNodeOperations"} })(snap)
	}
}

// TestFitsOnTheFirst asserts that the devices of a placement are on the node that it names.
func TestFitsOnTheFirst(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("a", "b", "c"), tc.Pool("a"), tc.Pool("b", tc.Devices(2)...), tc.Pool("c", tc.Devices(2)...), tc.Claim(waiting, tc.GPUs("gpu", 2)))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.Fits || e.Placement.Node != "b" || e.Placement.Claims[0].Devices[0].Pool != "b" {
		t.Errorf("%s %+v, want the devices of b", e.Verdict, e.Placement)
	}
	if len(e.Nodes) != 2 || !slices.Equal(e.Nodes[0].Names, []string{"b", "c"}) || e.Nodes[0].Verdict != api.Fits {
		t.Errorf("nodes %+v, want that it fits on b and c", e.Nodes)
	}
}
