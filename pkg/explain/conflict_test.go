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
	roots := []tc.DeviceWrapper{
		tc.Device("a", "root=x"), tc.Device("b", "root=x"),
		tc.Device("c", "root=y"), tc.Device("d", "root=y"),
	}
	tests := map[string]struct {
		cluster  []any
		conflict []string
		// more is true if more than that is in the way.
		more     bool
		remedies []string
	}{
		"count and constraint": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", roots...), tc.Claim(waiting, tc.GPUs("gpu", 4)).Matching("gpu.example.com/root")},
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
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "memory:=40Gi")),
				tc.Claim(waiting, tc.GPUs("gpu", 1, `device.attributes['gpu.example.com'].model == 'A' && device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) >= 0`)),
			},
			conflict: []string{"request gpu requires memory 80Gi or more"},
			remedies: []string{"User: require memory 40Gi or more instead of 80Gi or more in request gpu"},
		},
		"devices that others hold": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(3)...), tc.Serving("one", "n1", "gpu-0"), tc.Serving("two", "n1", "gpu-1"), tc.Claim(waiting, tc.GPUs("gpu", 2))},
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
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Tainted("xid", resourceapi.DeviceTaintEffectNoExecute)), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			conflict: []string{"taint xid:NoExecute on a is not tolerated"},
			remedies: []string{
				"Admin: repair a, or find out why driver gpu.example.com has set the taint xid:NoExecute: it removes it then",
				"User: tolerate the device taint xid:NoExecute, and run on broken hardware if driver gpu.example.com has set it for a fault",
			},
		},
		"parts of a selector keep their brackets": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "zone=z1", "color=red")),
				tc.Claim(waiting, tc.GPUs("gpu", 1, `(device.attributes["gpu.example.com"].model == "A" || device.attributes["gpu.example.com"].model == "B") && device.attributes["gpu.example.com"].zone == "z9" && device.attributes["gpu.example.com"].color == "blue"`)),
			},
			// Either part alone is one too many.
			conflict: []string{`request gpu requires zone "z9"`},
			more:     true,
			remedies: []string{`User: remove the selector zone "z9" from request gpu; and remove the selector color "blue" from request gpu`},
		},
		"two taints with one key": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Tainted("xid=31", resourceapi.DeviceTaintEffectNoSchedule), tc.Device("b").Tainted("xid=79", resourceapi.DeviceTaintEffectNoSchedule)),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			conflict: []string{"request gpu needs 2 devices", "taint xid=31:NoSchedule on a is not tolerated"},
			more:     true,
			remedies: []string{"Admin: repair a, or find out why driver gpu.example.com has set the taint xid=31:NoSchedule: it removes it then; and repair b, or find out why driver gpu.example.com has set the taint xid=79:NoSchedule: it removes it then"},
		},
		"another claim of the same pod": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("own", "n1", "gpu-0"), reserved("own", "q"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Pod("p", tc.Using("own", waiting)),
			},
			// The pod needs devices for both.
			conflict: []string{"gpu-0 is allocated to claim ml/own"},
			more:     true,
		},
		"another claim of the same pod, and room for both": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2, "model=A")...), tc.Serving("own", "n1", "gpu-0"), reserved("own", "q"),
				func(s *snapshot.Snapshot) {
					s.Slices[0].Spec.Devices[0].Attributes = tc.Device("", "model=B").Attributes
				},
				tc.Claim(waiting, tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].model == "B"`)), tc.Pod("p", tc.Using("own", waiting)),
			},
			conflict: []string{`request gpu requires model "B"`, "gpu-0 is allocated to claim ml/own"},
			remedies: []string{`User: remove the selector model "B" from request gpu`},
		},
		"one holder is enough": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", roots...), tc.Serving("one", "n1", "a", "b"), tc.Serving("two", "n1", "c"), tc.Serving("three", "n1", "d"),
				tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/root"),
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
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
				tc.Pool("n1", tc.Device("whole").Consuming("board", "slices=4"), tc.Device("half").Consuming("board", "slices=2")).Of(2),
				tc.Serving("serve", "n1", "half"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			conflict: []string{"half is allocated to claim serving/serve", "whole and half share counter set board of pool n1"},
			remedies: []string{"Nobody: wait until claim serving/serve is released"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Explain(t.Context(), tc.Cluster(test.cluster...), Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
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
