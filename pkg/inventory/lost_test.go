// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestNodeWithoutSlices keeps a node in all lists whose driver is away: pods there run on.
func TestNodeWithoutSlices(t *testing.T) {
	v := inventoryOf(t, tc.Cluster(tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...),
		tc.Claim("one", tc.GPUs("gpu", 1)).Holding("n2/gpu-0").ReservedFor("p", string(tc.UID("p"))),
		tc.Pod("p", tc.UsingClaim("gpu", "one"), tc.RunningOn("n2")),
		tc.Claim("admin", tc.GPUs("gpu", 1)).Holding("n2/gpu-1")))
	pools := v.Usage()
	if len(pools) != 2 || pools[1].Name != "n2" || pools[1].Node != "n2" || pools[1].State != api.PoolStateNoSlices || pools[1].Devices.Gone != 2 || pools[1].Devices.Total != 0 {
		t.Errorf("pools %+v", pools)
	}
	if pools[0].Devices.Gone != 0 || pools[0].Devices.Total != 2 {
		t.Errorf("the other pool %+v", pools[0].Devices)
	}
	devices := v.Devices()
	if len(devices) != 4 {
		t.Fatalf("devices %+v", devices)
	}
	if d := devices[2]; d.State != api.DeviceStateGone || d.Node != "n2" || d.Name != "gpu-0" || len(d.Holders) != 1 || len(d.Holders[0].Pods) != 1 {
		t.Errorf("device %+v", d)
	}
	nodes := v.Nodes()
	if len(nodes) != 2 || nodes[1].Name != "n2" || nodes[1].Devices.Gone != 2 || len(nodes[1].Groups) != 1 {
		t.Errorf("nodes %+v", nodes)
	}
	classes, err := v.Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c := classes[0].DeviceCounts; c.Gone != 2 || c.Total != 2 || c.Allocated != 0 {
		t.Errorf("class %+v", c)
	}
}

// TestGoneDevices distinguishes devices that their driver no longer publishes from devices
// that were moved into a pod, and from devices that could not be read.
func TestGoneDevices(t *testing.T) {
	one := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...)}
	claim := tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver + "/n1/gpu-7")
	for name, test := range map[string]struct {
		more []any
		want api.DeviceState
	}{
		"not published":      {[]any{claim}, api.DeviceStateGone},
		"slices not visible": {[]any{claim, snapshot.Gap{Resource: snapshot.ResourceSlices, Reason: "no rights"}}, ""},
	} {
		v := inventoryOf(t, tc.Cluster(append(one, test.more...)...))
		var state api.DeviceState
		for _, d := range v.Devices() {
			if d.Name == "gpu-7" {
				state = d.State
			}
		}
		if state != test.want {
			t.Errorf("%s: state %q, want %q", name, state, test.want)
		}
		pools := v.Usage()
		if len(pools) != 1 || pools[0].State == api.PoolStateNoSlices || (pools[0].Devices.Gone == 1) != (test.want != "") {
			t.Errorf("%s: pools %+v", name, pools)
		}
	}
}
