// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestState(t *testing.T) {
	objects := []any{
		slice("s", driverA, "p", device("d1"), device("d2", "memory:=40Gi").shareable(), device("d3")),
		claim("exclusive").holding("a.example.com/p/d1"),
		claim("admin").holding("a.example.com/p/d1", forAdmin).holding("a.example.com/p/d3", forAdmin),
		claim("share-1").holding("a.example.com/p/d2", asShare("1", "memory", "10Gi")),
		claim("share-2").holding("a.example.com/p/d2", asShare("2", "memory", "5Gi")),
		claim("pending"),
	}
	tests := map[string]struct {
		gates gates
		want  []string
	}{
		"consumable capacity": {
			gates: incubatingGates(),
			want: []string{
				"d1 in use, held by admin exclusive",
				"d2 shared, memory 15Gi, held by share-1 share-2",
				"d3 held by admin",
			},
		},
		"without it, shares are exclusive": {
			gates: stableGates(),
			want: []string{
				"d1 in use, held by admin exclusive",
				"d2 in use, held by share-1 share-2",
				"d3 held by admin",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAllocator(t, cluster(append(objects, tt.gates)...))
			var got []string
			for _, d := range a.Devices() {
				line := d.ID.Device
				if a.InUse(d.ID) {
					line += " in use,"
				}
				if a.Shared(d.ID) {
					line += " shared,"
				}
				for name, quantity := range a.Consumed(d.ID) {
					line += fmt.Sprintf(" %s %s,", name, quantity.String())
				}
				line += " held by"
				for _, holder := range a.Holders(d.ID) {
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
		slice("counters", driverA, "p").of(2).withCounters("gpu-1", "memory=80Gi", "cores=7").withCounters("gpu-0", "memory=80Gi"),
		slice("devices", driverA, "p",
			device("d1").consuming("gpu-1", "memory=10Gi", "cores=1"),
			device("d2").consuming("gpu-1", "memory=20Gi", "cores=2").shareable(),
			device("d3").consuming("gpu-1", "memory=80Gi", "cores=7").consuming("gpu-0", "memory=80Gi"),
			device("d4").consuming("gpu-0", "memory=81Gi"),
		).of(2),
		claim("c1").holding("a.example.com/p/d1"),
		claim("c2").holding("a.example.com/p/d2", asShare("1", "", "")),
		claim("c3").holding("a.example.com/p/d2", asShare("2", "", "")),
		claim("c4").holding("a.example.com/p/d3", forAdmin),
		claim("c5").holding("a.example.com/p/d4"),
	}
	describe := func(a *Allocator) []string {
		var lines []string
		for _, u := range a.CountersOf(a.Pools()[0]) {
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
	for _, g := range []gates{stableGates(), incubatingGates(), experimentalGates()} {
		a := newAllocator(t, cluster(append(objects, g)...))
		if diff := gocmp.Diff(want, describe(a)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", a.channel, diff)
		}
	}
	if got := describe(newAllocator(t, cluster(objects...))); got != nil {
		t.Errorf("partitionable devices off: got %v", got)
	}
}
