// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

// TestSharedViews asserts that nodes share what they see of a pool exactly if
// it is the same.
func TestSharedViews(t *testing.T) {
	one, two, three := tc.Node("n1", "zone=a", "rack=r"), tc.Node("n2", "zone=a", "rack=r"), tc.Node("n3", "zone=b", "rack=r")
	for _, tt := range []struct {
		name   string
		slices []any
		// same are the nodes that see the same as the first one.
		two, three bool
	}{
		{"for all nodes", []any{tc.Slice("s", tc.DriverA, "p", tc.Device("d")).OnAllNodes()}, true, true},
		{"a slice for one", []any{tc.Slice("s", tc.DriverA, "p", tc.Device("d")).Of(2).OnAllNodes(), tc.Slice("t", tc.DriverA, "p", tc.Device("e")).Of(2).OnNode("n3")}, true, false},
		{"a slice for each", []any{tc.Slice("s", tc.DriverA, "p", tc.Device("d")).Of(3).OnNode("n1"), tc.Slice("t", tc.DriverA, "p", tc.Device("e")).Of(3).OnNode("n2"), tc.Slice("u", tc.DriverA, "p", tc.Device("f")).Of(3).OnNode("n3")}, false, false},
		{"selected in the same way", []any{tc.Slice("s", tc.DriverA, "p", tc.Device("d")).OnNodesWith("rack", "r")}, true, true},
		{"another slice selected", []any{
			tc.Slice("s", tc.DriverA, "p", tc.Device("d")).Of(2).OnNodesWith("rack", "r"), tc.Slice("t", tc.DriverA, "p", tc.Device("e")).Of(2).OnNodesWith("zone", "a"),
		}, true, false},
		{"another device selected", []any{tc.Slice("s", tc.DriverA, "p", tc.Device("d").OnNode("n1"), tc.Device("e").OnNode("n2"), tc.Device("f").OnNode("n3")).PerDevice()}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newCluster(t, tc.Snapshot(append(tt.slices, tc.IncubatingGates(), one, two, three)...))
			views := map[*corev1.Node]*NodePool{}
			for _, n := range []*corev1.Node{one, two, three} {
				pools, err := a.Pools.For(n)
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
