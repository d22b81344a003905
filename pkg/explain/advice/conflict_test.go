// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
)

// TestNearest covers nodes where nothing fits, nearest first, what conflicts on the
// nearest, and whether that has devices enough if nobody else used them.
func TestNearest(t *testing.T) {
	for name, test := range map[string]struct {
		parts []any
		near  string
		facts []string
		// enough is true if others only use too many, or what they have does not match.
		enough bool
	}{
		"more devices are nearer": {
			parts: []any{tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(3)...), tc.Claim("c", tc.GPUs("gpu", 4))},
			near:  "n2 n1", facts: []string{"request gpu needs 4 devices"},
		},
		"equivalent nodes are one": {
			parts: []any{tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), tc.Claim("c", tc.GPUs("gpu", 2))},
			near:  "n1+n2", facts: []string{"request gpu needs 2 devices"},
		},
		"nodes without devices are left out": {
			parts: []any{tc.Pool("n1", tc.Devices(1)...), tc.Claim("c", tc.GPUs("gpu", 2))},
			near:  "n1", facts: []string{"request gpu needs 2 devices"},
		},
		"used by another claim": {
			parts:  []any{tc.Pool("n1", tc.Devices(2)...), tc.Serving("other", "n1", "gpu-0"), tc.Claim("c", tc.GPUs("gpu", 2))},
			near:   "n1",
			facts:  []string{"request gpu needs 2 devices", "gpu-0 is allocated to claim serving/other"},
			enough: true,
		},
		"a constraint": {
			parts:  []any{tc.Pool("n1", tc.Device("a", "root=x"), tc.Device("b", "root=y")), tc.Claim("c", tc.GPUs("gpu", 2)).Matching("gpu.example.com/root")},
			near:   "n1",
			facts:  []string{"request gpu needs 2 devices", "all devices must have the same gpu.example.com/root"},
			enough: true,
		},
		"a taint": {
			parts:  []any{tc.Pool("n1", tc.Device("a").Tainted("xid", resourceapi.DeviceTaintEffectNoExecute)), tc.Claim("c", tc.GPUs("gpu", 1))},
			near:   "n1",
			facts:  []string{"taint xid:NoExecute on a is not tolerated"},
			enough: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := testquestion.Of(t, tc.Cluster(append(test.parts, tc.Nodes("n1", "n2"))...), nil)
			v := &verdict.Verdict{Question: q, Target: &target.Target{}, Devices: api.DoesNotFit}
			c := &advice.Case{Verdict: v, Nodes: q.Reach.Candidates, Contents: verdict.NewNodeContents(), Confirmer: &verdict.Confirmer{}}
			near := c.Nearest(t.Context())
			var groups []string
			for _, p := range near {
				var names []string
				for _, node := range p.Nodes {
					names = append(names, node.Name)
				}
				groups = append(groups, strings.Join(names, "+"))
			}
			if got := strings.Join(groups, " "); got != test.near {
				t.Fatalf("nearest are %s, want %s", got, test.near)
			}
			found := near[0].Conflict(t.Context())
			if found == nil {
				t.Fatal("no conflict found")
			}
			var facts []string
			for _, f := range found.Facts {
				facts = append(facts, f.Text)
			}
			if diff := cmp.Diff(test.facts, facts); diff != "" || found.Node != near[0].Node().Name {
				t.Errorf("conflict on %s, -want +got:\n%s", found.Node, diff)
			}
			if !found.AnyOneSuffices {
				t.Error("giving up one fact is not enough, though the conflict is minimal")
			}
			if got := advice.Enough(t.Context(), q, q.Claims[0].Funnels[0][0], near[0].Node()); got != test.enough {
				t.Errorf("devices enough: %t, want %t", got, test.enough)
			}
		})
	}
}

// TestScenario asks the allocator about a conflict: the claims fit as soon as any
// one of its facts is given up.
func TestScenario(t *testing.T) {
	q := testquestion.Of(t, tc.Cluster(
		tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "root=x"), tc.Device("b", "root=x"), tc.Device("c", "root=y")), tc.Serving("other", "n1", "a"),
		tc.Claim("c", tc.GPUs("gpu", 2)).Matching("gpu.example.com/root"),
	), nil)
	v := &verdict.Verdict{Question: q, Target: &target.Target{}, Devices: api.DoesNotFit}
	c := &advice.Case{Verdict: v, Nodes: q.Reach.Candidates, Contents: verdict.NewNodeContents(), Confirmer: &verdict.Confirmer{}}
	node := q.Reach.Candidates[0]
	s, err := c.Scenario(node)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := s.Conflict(t.Context())
	if err != nil || len(facts) != 3 {
		t.Fatalf("conflict of the facts %v (%v), want the count, the constraint and the other claim", facts, err)
	}
	fits := func(facts []int) bool {
		h := s.Holding(facts)
		amended := q.Cluster.Amended(h.Snap)
		return allocator.Of(amended).Check(t.Context(), node, h.Claims).Outcome == allocator.Fits
	}
	if fits(facts) {
		t.Error("the claims fit though all facts of the conflict hold")
	}
	for i := range facts {
		if !fits(slices.Delete(slices.Clone(facts), i, i+1)) {
			t.Errorf("the claims do not fit without fact %d of the conflict", i)
		}
	}
}
