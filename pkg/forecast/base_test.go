// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestBaseEqualsAll counts all shapes of fleets and of random clusters on one node of
// each group of equivalent nodes, and on all nodes.
func TestBaseEqualsAll(t *testing.T) {
	clusters := map[string]*snapshot.Snapshot{}
	mixed := fleet.Mixed(120)
	fleet.AddWaiting(mixed, 40)
	clusters["mixed"] = mixed
	for seed := range uint64(40) {
		clusters[fmt.Sprint("random ", seed)] = fleet.Random(seed).Snapshot
	}
	compared, stops, whole := 0, 0, 0
	for name, snap := range clusters {
		s := cluster.New(snap)
		shapes, _ := shapesIn(snap)
		c := newSlots(s, shapes)
		shapes, err := c.laddered(t.Context(), shapes)
		if err != nil {
			t.Fatal(err)
		}
		for _, shape := range shapes {
			for free, state := range map[bool]*cluster.Cluster{false: c.now, true: c.free} {
				got, err := c.count(t.Context(), shape, free)
				if err != nil {
					t.Fatal(err)
				}
				want, _, err := slotsIn(t.Context(), &explain.Asker{}, state, c.pods[shape.key()], nil)
				if err != nil {
					t.Fatal(err)
				}
				if a, b := textOf(got), textOf(want); a != b {
					t.Errorf("%s, %s, released %v:\ngot  %s\nwant %s", name, shape.key(), free, a, b)
				}
				if base, err := c.baseOf(t.Context(), shape, true); err != nil {
					t.Fatal(err)
				} else if base.whole != nil && len(want.bounds) == 0 && exact(want.count) {
					// As it is done where pods were moved: on all nodes, or on some.
					for _, every := range []int{1, 2} {
						changed := map[string]bool{}
						for i, node := range state.Snapshot.Nodes {
							changed[node.Name] = i%every == 0
						}
						again, err := base.slotsOn(t.Context(), state, c.pods[shape.key()], shape.Devices, want, changed)
						if err != nil {
							t.Fatal(err)
						}
						again.bound, again.count.AtMost = want.bound, want.count.AtMost
						if a, b := textOf(again), textOf(want); a != b {
							t.Errorf("%s, %s, released %v, every %d. node by the devices of the released cluster:\ngot  %s\nwant %s", name, shape.key(), free, every, a, b)
						}
					}
					whole++
				}
				switch {
				case got.count.AtLeast > 0:
					compared++
				case !free:
					stops++
					if diff := cmp.Diff(want.stop, got.stop); diff != "" {
						t.Errorf("%s, %s: why none fits, -on all nodes +on few\n%s", name, shape.key(), diff)
					}
				}
			}
		}
	}
	if t.Logf("%d numbers and %d reasons compared, %d numbers twice", compared, stops, whole); compared < 40 || stops < 40 || whole < 40 {
		t.Error("the cases prove little")
	}
}

func textOf(c *slotCount) string {
	text := fmt.Sprint(c.count.AtLeast, c.count.AtMost == nil, c.bounds, c.bound)
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		text += fmt.Sprintf(" %s:%d", name, c.nodes[name])
	}
	return text
}
