// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
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
