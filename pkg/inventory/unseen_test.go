// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// A count is only a bound if what could not be seen can change it.
func TestCountDevicesBounds(t *testing.T) {
	objects := []any{
		tc.Gate("DRADeviceTaints", true), tc.Gate("DRADeviceTaintRules", true), tc.Gate("DRAConsumableCapacity", true),
		tc.Pool(tc.Node1, tc.Device("taken"), tc.Device("free"), tc.Device("tainted").TaintedSince("example.com/x", resourceapi.DeviceTaintEffectNoSchedule, tc.Taken().Add(-time.Hour))),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("taken"),
	}
	for name, test := range map[string]struct {
		hidden []any
		want   map[string]api.Bound
	}{
		"nothing": {},
		"rules": {
			hidden: []any{snapshot.Gap{Resource: snapshot.ResourceTaintRules}},
			want:   map[string]api.Bound{"free": api.BoundAtMost, "tainted": api.BoundAtLeast},
		},
		"claims": {
			hidden: []any{snapshot.Gap{Resource: snapshot.ResourceClaims}},
			want:   map[string]api.Bound{"free": api.BoundAtMost, "tainted": api.BoundAtMost, "allocated": api.BoundAtLeast, "unhealthy": api.BoundAtLeast},
		},
		"pods": {
			hidden: []any{snapshot.Gap{Resource: snapshot.ResourcePods}},
			want:   map[string]api.Bound{"unhealthy": api.BoundAtLeast},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := inventoryWith(t, append(append([]any{}, objects...), test.hidden...)...)
			var devices []*api.Device
			for _, d := range v.Devices() {
				devices = append(devices, &d)
			}
			counts := v.CountDevices(devices)
			if counts.Total != 3 || counts.Free != 1 || counts.Allocated != 1 || counts.Tainted != 1 {
				t.Errorf("counted %+v, want one of each", counts)
			}
			if diff := cmp.Diff(test.want, counts.Bounds); diff != "" {
				t.Errorf("where %s are hidden, -want +got:\n%s", name, diff)
			}
		})
	}
}
