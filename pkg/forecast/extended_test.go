// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestExtendedResourcesOfSharedPools counts copies that ask for devices of a shared pool as
// an extended resource: the devices are counted once for all nodes, and a device plugin's
// besides.
func TestExtendedResourcesOfSharedPools(t *testing.T) {
	named := func(s *snapshot.Snapshot) { s.Classes[0].Spec.ExtendedResourceName = ptr.To("example.com/gpu") }
	plugin := tc.ChangeNode("n3", func(node *corev1.Node) { node.Status.Allocatable["example.com/gpu"] = tc.ResourceList("x=5")["x"] })
	for name, test := range map[string]struct {
		request string
		change  func(*snapshot.Snapshot)
		want    int
		ranges  bool
	}{
		"a device each":        {"example.com/gpu=1", func(*snapshot.Snapshot) {}, 4, false},
		"two devices each":     {"example.com/gpu=2", func(*snapshot.Snapshot) {}, 2, true},
		"more than there are":  {"example.com/gpu=5", func(*snapshot.Snapshot) {}, 0, false},
		"also a device plugin": {"example.com/gpu=1", plugin, 9, true},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(tc.Nodes("n1", "n2", "n3"), tc.Gate("DRAExtendedResource", true), named, test.change,
				tc.Slice("fabric", tc.Driver, "fabric", tc.Devices(4)...).OnAllNodes())
			s := cluster.New(snap)
			f, err := forecast.CountShape(t.Context(), s, &forecast.Shape{Several: "pods", One: "pod", Pod: tc.Pod("p", tc.Requesting(test.request))}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if f.Now.AtLeast != test.want || f.Now.AtMost == nil || *f.Now.AtMost != test.want || len(f.Bounds) > 0 != test.ranges {
				t.Errorf("at least %d, at most %d, range %v; want %d", f.Now.AtLeast, ptr.Deref(f.Now.AtMost, -1), f.Bounds, test.want)
			}
		})
	}
}

// TestCopiesOfOneClaim counts copies that use one claim: they are all on the node of its device, so
// that none of the other nodes adds to the most, and the node with the least room is the least.
func TestCopiesOfOneClaim(t *testing.T) {
	cpu := func(node, cores string) func(*snapshot.Snapshot) {
		return tc.ChangeNode(node, func(n *corev1.Node) { n.Status.Allocatable["cpu"] = tc.ResourceList("x=" + cores)["x"] })
	}
	for name, test := range map[string]struct {
		parts       []any
		least, most int
		limit       string
		ranges      bool
	}{
		"the least in the middle": {[]any{cpu("n1", "3"), cpu("n2", "2"), cpu("n3", "4")}, 2, 4, "cpu for 4", true},
		"the same room":           {[]any{cpu("n1", "3"), cpu("n2", "3"), cpu("n3", "3")}, 3, 3, "cpu for 3", false},
		"a device of all nodes": {[]any{
			cpu("n1", "3"), cpu("n2", "2"), cpu("n3", "4"), cpu("n4", "5"), tc.Slice("z", tc.Driver, "z", tc.Devices(1)...).OnAllNodes(),
		}, 2, 14, "cpu for 14", true},
	} {
		t.Run(name, func(t *testing.T) {
			parts := append([]any{
				tc.Nodes("n1", "n2", "n3", "n4"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), tc.Pool("n3", tc.Devices(1)...), tc.Claim("shared", tc.GPUs("gpu", 1)),
			}, test.parts...)
			shape := &forecast.Shape{Several: "pods", One: "pod", Pod: tc.Pod("p", tc.Using("shared"), tc.Requesting("cpu=1"))}
			f, err := forecast.CountShape(t.Context(), cluster.New(tc.Cluster(parts...)), shape, 1)
			if err != nil {
				t.Fatal(err)
			}
			limit := fmt.Sprintf("%s for %d", f.Limits[0].Resource, f.Limits[0].Copies)
			if f.Now.AtLeast != test.least || ptr.Deref(f.Now.AtMost, -1) != test.most || limit != test.limit || len(f.Bounds) > 0 != test.ranges {
				t.Errorf("%d to %d, %s, range %v; want %+v", f.Now.AtLeast, ptr.Deref(f.Now.AtMost, -1), limit, f.Bounds, test)
			}
		})
	}
}
