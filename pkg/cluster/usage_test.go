// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

func TestState(t *testing.T) {
	objects := []any{
		tc.Slice("s", tc.DriverA, "p", tc.Device("d1"), tc.Device("d2", "memory:=40Gi").Shareable(), tc.Device("d3")),
		tc.Claim("exclusive").Holding("a.example.com/p/d1"),
		tc.Claim("admin").Holding("a.example.com/p/d1", tc.ForAdmin).Holding("a.example.com/p/d3", tc.ForAdmin),
		tc.Claim("share-1").Holding("a.example.com/p/d2", tc.AsShare("1", "memory", "10Gi")),
		tc.Claim("share-2").Holding("a.example.com/p/d2", tc.AsShare("2", "memory", "5Gi")),
		tc.Claim("pending"),
	}
	tests := map[string]struct {
		gates tc.Gates
		want  []string
	}{
		"consumable capacity": {
			gates: tc.IncubatingGates(),
			want: []string{
				"d1 in use, held by admin exclusive",
				"d2 shared, memory 15Gi, held by share-1 share-2",
				"d3 held by admin",
			},
		},
		"without it, shares are exclusive": {
			gates: tc.StableGates(),
			want: []string{
				"d1 in use, held by admin exclusive",
				"d2 in use, held by share-1 share-2",
				"d3 held by admin",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := newCluster(t, tc.Snapshot(append(objects, tt.gates)...))
			var got []string
			for _, d := range a.Pools.Devices() {
				line := d.ID.Device
				if a.Usage.InUse(d.ID) {
					line += " in use,"
				}
				if a.Usage.Shared(d.ID) {
					line += " shared,"
				}
				for name, quantity := range a.Usage.Consumed(d.ID) {
					line += fmt.Sprintf(" %s %s,", name, quantity.String())
				}
				line += " held by"
				for _, holder := range a.Usage.Holders(d.ID) {
					line += " " + holder.Claim.Name
					if holder.Result.Device != d.ID.Device {
						t.Errorf("holder of %s has the result for %s", d.ID, holder.Result.Device)
					}
				}
				got = append(got, line)
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountersOf(t *testing.T) {
	objects := []any{
		tc.Slice("counters", tc.DriverA, "p").Of(2).WithCounters("gpu-1", "memory=80Gi", "cores=7").WithCounters("gpu-0", "memory=80Gi"),
		tc.Slice("devices", tc.DriverA, "p",
			tc.Device("d1").Consuming("gpu-1", "memory=10Gi", "cores=1"),
			tc.Device("d2").Consuming("gpu-1", "memory=20Gi", "cores=2").Shareable(),
			tc.Device("d3").Consuming("gpu-1", "memory=80Gi", "cores=7").Consuming("gpu-0", "memory=80Gi"),
			tc.Device("d4").Consuming("gpu-0", "memory=81Gi"),
		).Of(2),
		tc.Claim("c1").Holding("a.example.com/p/d1"),
		tc.Claim("c2").Holding("a.example.com/p/d2", tc.AsShare("1", "", "")),
		tc.Claim("c3").Holding("a.example.com/p/d2", tc.AsShare("2", "", "")),
		tc.Claim("c4").Holding("a.example.com/p/d3", tc.ForAdmin),
		tc.Claim("c5").Holding("a.example.com/p/d4"),
	}
	describe := func(a *Cluster) []string {
		var lines []string
		for _, u := range a.Partitions.Counters(a.Pools.All()[0]) {
			line := fmt.Sprintf("%s %s: %s - %s = %s", u.CounterSet, u.Counter, u.Total.String(), u.Used.String(), u.Left.String())
			for _, id := range u.By {
				line += " " + id.Device
			}
			lines = append(lines, line)
		}
		return lines
	}
	want := []string{
		"gpu-0 memory: 80Gi - 81Gi = -1Gi d4",
		"gpu-1 cores: 7 - 3 = 4 d1 d2",
		"gpu-1 memory: 80Gi - 30Gi = 50Gi d1 d2",
	}
	for _, g := range []tc.Gates{tc.StableGates(), tc.IncubatingGates(), tc.ExperimentalGates()} {
		a := newCluster(t, tc.Snapshot(append(objects, g)...))
		if diff := gocmp.Diff(want, describe(a)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", a.Gates.channel, diff)
		}
	}
	if got := describe(newCluster(t, tc.Snapshot(objects...))); got != nil {
		t.Errorf("partitionable devices off: got %v", got)
	}
}
