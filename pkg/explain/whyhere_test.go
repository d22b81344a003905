// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// allocatedAs returns a claim allocated a device of the first node for a request.
func allocatedAs(c tc.ClaimWrapper, request, device string) tc.ClaimWrapper {
	return c.Holding(tc.Driver+"/"+tc.Node1+"/"+device, func(r *resourceapi.DeviceRequestAllocationResult) { r.Request = request }).ReservedFor("p", string(tc.UID("p")))
}

func whyHere(t *testing.T, objects ...any) *api.WhyHere {
	t.Helper()
	objects = append(objects, tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)))
	snap := tc.Cluster(objects...)
	tc.Unchanged(t, snap)
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.Allocated || e.WhyHere == nil {
		t.Fatalf("got %s (%s) and %+v", e.Verdict, e.Summary, e.WhyHere)
	}
	return e.WhyHere
}

func TestWhyHereNodes(t *testing.T) {
	t.Parallel()
	one := allocatedAs(tc.Claim("c", tc.GPUs("r", 1)), "r", "gpu-0")
	h := whyHere(t, tc.Nodes(tc.Node1, tc.Node2, "node-3"), tc.Pool(tc.Node1, tc.Devices(1)...), tc.Pool(tc.Node2, tc.Devices(1)...), one)
	if !h.FitsHere || h.NodeCount != 3 || len(h.Nodes) != 2 || !slices.Equal(h.Nodes[0].Names, []string{tc.Node1, tc.Node2}) || h.Nodes[1].Verdict != api.DoesNotFit {
		t.Errorf("got %+v", h)
	}
	h = whyHere(t, tc.Nodes(tc.Node1, tc.Node2), tc.Pool(tc.Node1, tc.Devices(1)...), one,
		tc.ChangeNode(tc.Node1, func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	if h.FitsHere {
		t.Errorf("a node that was cordoned since: got %+v", h)
	}
}

func TestWhyHereAlternatives(t *testing.T) {
	t.Parallel()
	list := func(first, second tc.RequestWrapper) tc.ClaimWrapper {
		return tc.Claim("c", tc.FirstAvailable("gpu", first, second))
	}
	two, one := tc.GPUs("two", 2), tc.GPUs("one", 1)
	for name, test := range map[string]struct {
		claim    tc.ClaimWrapper
		objects  []any
		position int
		fitsNow  bool
		message  string
	}{
		"the first": {claim: allocatedAs(list(one, two), "gpu/one", "gpu-0"), position: 1},
		"the second": {
			claim: allocatedAs(list(two, one), "gpu/one", "gpu-0"), objects: []any{tc.Serving("other", tc.Node1, "gpu-1")},
			position: 2, message: "request gpu/two: 1 of 2 available (1 allocated)",
		},
		"the second, and the first could be had now": {claim: allocatedAs(list(two, one), "gpu/one", "gpu-0"), position: 2, fitsNow: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := whyHere(t, append(test.objects, tc.Nodes(tc.Node1), tc.Pool(tc.Node1, tc.Devices(2)...), test.claim)...)
			if len(h.Alternatives) != 1 || h.Alternatives[0].Position != test.position || h.Alternatives[0].Count != 2 {
				t.Fatalf("got %+v", h.Alternatives)
			}
			earlier := h.Alternatives[0].Earlier
			if len(earlier) != test.position-1 {
				t.Fatalf("got %+v", earlier)
			}
			if len(earlier) > 0 && (earlier[0].FitsNow != test.fitsNow || earlier[0].Message != test.message) {
				t.Errorf("got %+v", earlier[0])
			}
		})
	}
}

func TestWhyHereSmaller(t *testing.T) {
	t.Parallel()
	sized := func(name, memory string) tc.DeviceWrapper {
		return tc.Device(name, "memory:="+memory)
	}
	for name, test := range map[string]struct {
		request tc.RequestWrapper
		devices []tc.DeviceWrapper
		instead string
	}{
		"a smaller one is free":        {request: tc.GPUs("r", 1), devices: []tc.DeviceWrapper{sized("gpu-0", "80Gi"), sized("gpu-1", "40Gi")}, instead: "gpu-1"},
		"an equal one comes first":     {request: tc.GPUs("r", 1), devices: []tc.DeviceWrapper{sized("gpu-0", "80Gi"), sized("gpu-1", "80Gi"), sized("gpu-2", "40Gi")}, instead: "gpu-2"},
		"no smaller one":               {request: tc.GPUs("r", 1), devices: []tc.DeviceWrapper{sized("gpu-0", "80Gi"), sized("gpu-1", "80Gi")}},
		"the smaller one is too small": {request: tc.GPUs("r", 1).WithCapacity("memory", "60Gi"), devices: []tc.DeviceWrapper{sized("gpu-0", "80Gi"), sized("gpu-1", "40Gi")}},
		"the smaller one is tainted":   {request: tc.GPUs("r", 1), devices: []tc.DeviceWrapper{sized("gpu-0", "80Gi"), sized("gpu-1", "40Gi").Tainted("broken", resourceapi.DeviceTaintEffectNoSchedule)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := whyHere(t, tc.Nodes(tc.Node1), tc.Pool(tc.Node1, test.devices...), allocatedAs(tc.Claim("c", test.request), "r", "gpu-0"))
			switch {
			case test.instead == "" && len(h.Smaller) > 0:
				t.Errorf("got %+v", h.Smaller)
			case test.instead == "":
			case len(h.Smaller) != 1 || h.Smaller[0].Instead != tc.Driver+"/"+tc.Node1+"/"+test.instead || h.Smaller[0].Capacities[0] != (api.CapacityDifference{Name: "memory", Device: "80Gi", Instead: "40Gi"}):
				t.Errorf("got %+v", h.Smaller)
			}
		})
	}
}
