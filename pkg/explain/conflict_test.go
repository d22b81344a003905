// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestConflict(t *testing.T) {
	roots := []resourceapi.Device{
		device("a", tc.WithAttribute("root", "x")), device("b", tc.WithAttribute("root", "x")),
		device("c", tc.WithAttribute("root", "y")), device("d", tc.WithAttribute("root", "y")),
	}
	tests := map[string]struct {
		cluster  []part
		conflict []string
		// more is true if more than that is in the way.
		more     bool
		remedies []string
	}{
		"count and constraint": {
			cluster: []part{nodes("n1"), pool("n1", roots...), constrained(waiting, same("gpu.example.com/root"), exact("gpu", 4))},
			conflict: []string{
				"request gpu needs 4 devices",
				"all devices must have the same gpu.example.com/root",
			},
			remedies: []string{
				"User: request 2 devices instead of 4 in request gpu",
				"User: remove the constraint: the same gpu.example.com/root",
			},
		},
		"one of two parts of a selector": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a", withModel("A"), withMemory("40Gi"))),
				claim(waiting, exact("gpu", 1, where(`device.attributes['gpu.example.com'].model == 'A' && device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) >= 0`))),
			},
			conflict: []string{"request gpu requires memory 80Gi or more"},
			remedies: []string{"User: require memory 40Gi or more instead of 80Gi or more in request gpu"},
		},
		"devices that others hold": {
			cluster: []part{nodes("n1"), pool("n1", devices(3)...), holding("one", "n1", "gpu-0"), holding("two", "n1", "gpu-1"), claim(waiting, exact("gpu", 2))},
			conflict: []string{
				"request gpu needs 2 devices",
				"gpu-0 is allocated to claim serving/one",
				"gpu-1 is allocated to claim serving/two",
			},
			remedies: []string{
				"Nobody: wait until claim serving/one is released",
				"User: request 1 device instead of 2 in request gpu",
			},
		},
		"a taint": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a", withTaint("xid", resourceapi.DeviceTaintEffectNoExecute))), claim(waiting, exact("gpu", 1)),
			},
			conflict: []string{"taint xid:NoExecute on a is not tolerated"},
			remedies: []string{"User: tolerate the device taint xid:NoExecute if the workload can use such devices"},
		},
		"parts of a selector keep their brackets": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a", withModel("A"), tc.WithAttribute("zone", "z1"), tc.WithAttribute("color", "red"))),
				claim(waiting, exact("gpu", 1, where(`(device.attributes["gpu.example.com"].model == "A" || device.attributes["gpu.example.com"].model == "B") && device.attributes["gpu.example.com"].zone == "z9" && device.attributes["gpu.example.com"].color == "blue"`))),
			},
			// Either part alone is one too many.
			conflict: []string{`request gpu requires zone "z9"`},
			more:     true,
			remedies: []string{`User: remove the selector zone "z9" and color "blue" from request gpu`},
		},
		"two taints with one key": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a", withTaintValue("xid", "31")), device("b", withTaintValue("xid", "79"))),
				claim(waiting, exact("gpu", 2)),
			},
			conflict: []string{"request gpu needs 2 devices", "taint xid=31:NoSchedule on a is not tolerated"},
			more:     true,
		},
		"another claim of the same pod": {
			cluster: []part{
				nodes("n1"), pool("n1", devices(1)...), holding("own", "n1", "gpu-0"), reserved("own", "q"), claim(waiting, exact("gpu", 1)),
				pod("p", "own", waiting),
			},
			// The pod needs devices for both.
			conflict: []string{"gpu-0 is allocated to claim ml/own"},
			more:     true,
		},
		"another claim of the same pod, and room for both": {
			cluster: []part{
				nodes("n1"), pool("n1", devices(2, withModel("A"))...), holding("own", "n1", "gpu-0"), reserved("own", "q"),
				func(s *snapshot.Snapshot) {
					s.Slices[0].Spec.Devices[0].Attributes = device("", withModel("B")).Attributes
				},
				claim(waiting, exact("gpu", 1, where(`device.attributes["gpu.example.com"].model == "B"`))), pod("p", "own", waiting),
			},
			conflict: []string{`request gpu requires model "B"`, "gpu-0 is allocated to claim ml/own"},
			remedies: []string{`User: require model "A" instead of "B" in request gpu`},
		},
		"one holder is enough": {
			cluster: []part{
				nodes("n1"), pool("n1", roots...), holding("one", "n1", "a", "b"), holding("two", "n1", "c"), holding("three", "n1", "d"),
				constrained(waiting, same("gpu.example.com/root"), exact("gpu", 2)),
			},
			conflict: []string{
				"request gpu needs 2 devices",
				"a and b are allocated to claim serving/one",
				"c is allocated to claim serving/two",
			},
			more:     true,
			remedies: []string{"Nobody: wait until claim serving/one is released"},
		},
		"counters that a partition holds": {
			cluster: []part{
				nodes("n1"), counters("n1", "board", "slices", "4"),
				slice("n1", twoSlices, device("whole", withCounter("board", "slices", "4")), device("half", withCounter("board", "slices", "2"))),
				holding("serve", "n1", "half"), claim(waiting, exact("gpu", 1)),
			},
			conflict: []string{"half is allocated to claim serving/serve", "whole and half share counter set board of pool n1"},
			remedies: []string{"Nobody: wait until claim serving/serve is released"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Explain(t.Context(), snapshotOf(t, test.cluster...), Options{Kind: api.KindClaim, Namespace: namespace, Name: waiting})
			if err != nil {
				t.Fatal(err)
			}
			var conflict, found []string
			if e.Conflict != nil {
				if e.Conflict.AnyOneSuffices == test.more {
					t.Errorf("any one of them is enough: %t", e.Conflict.AnyOneSuffices)
				}
				for _, f := range e.Conflict.Facts {
					conflict = append(conflict, f.Text)
				}
			}
			for _, r := range e.Remedies {
				if len(r.Devices) == 0 || r.Node != "n1" {
					t.Errorf("remedy without proof: %+v", r)
				}
				found = append(found, r.Actor+": "+r.Change)
			}
			if diff := cmp.Diff(test.conflict, conflict); diff != "" {
				t.Errorf("conflict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.remedies, found); diff != "" {
				t.Errorf("remedies (-want +got):\n%s", diff)
			}
		})
	}
}
