// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSharedViews asserts that nodes share what they see of a pool exactly if
// it is the same.
func TestSharedViews(t *testing.T) {
	one, two, three := node("n1", "zone=a", "rack=r"), node("n2", "zone=a", "rack=r"), node("n3", "zone=b", "rack=r")
	for _, tt := range []struct {
		name   string
		slices []any
		// same are the nodes that see the same as the first one.
		two, three bool
	}{
		{"for all nodes", []any{slice("s", driverA, "p", device("d")).onAllNodes()}, true, true},
		{"a slice for one", []any{slice("s", driverA, "p", device("d")).of(2).onAllNodes(), slice("t", driverA, "p", device("e")).of(2).onNode("n3")}, true, false},
		{"a slice for each", []any{slice("s", driverA, "p", device("d")).of(3).onNode("n1"), slice("t", driverA, "p", device("e")).of(3).onNode("n2"), slice("u", driverA, "p", device("f")).of(3).onNode("n3")}, false, false},
		{"selected in the same way", []any{slice("s", driverA, "p", device("d")).onNodesWith("rack", "r")}, true, true},
		{"another slice selected", []any{
			slice("s", driverA, "p", device("d")).of(2).onNodesWith("rack", "r"), slice("t", driverA, "p", device("e")).of(2).onNodesWith("zone", "a"),
		}, true, false},
		{"another device selected", []any{slice("s", driverA, "p", device("d").onNode("n1"), device("e").onNode("n2"), device("f").onNode("n3")).perDevice()}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAllocator(t, cluster(append(tt.slices, incubatingGates(), one, two, three)...))
			views := map[*corev1.Node]*NodePool{}
			for _, n := range []*corev1.Node{one, two, three} {
				pools, err := a.PoolsFor(n)
				if err != nil || len(pools) != 1 {
					t.Fatalf("%d pools, error %v", len(pools), err)
				}
				views[n] = pools[0]
			}
			if got := views[one] == views[two]; got != tt.two {
				t.Errorf("n1 and n2 share a view: %t", got)
			}
			if got := views[one] == views[three]; got != tt.three {
				t.Errorf("n1 and n3 share a view: %t", got)
			}
		})
	}
}
