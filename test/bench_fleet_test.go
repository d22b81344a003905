// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/load"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/save"
)

// BenchmarkFleet asks about a claim that fits on no node of a fleet with 8
// devices and 4 allocated claims for each node, in turns with the least that
// anybody could do. It reports
//
//	plain-s      load the file, and ask the allocator about each node, one
//	             after the other
//	explain-s    load the file, explain, with conflict and remedies, and print
//	load-s       what both have in common: load the file
//	ratio        explain-s divided by plain-s
//	us/node      microseconds of explain-s for each node; it stays the same
//	             where time grows as the fleet does
//
// Ten rounds of 5,000 nodes: -bench BenchmarkFleet/nodes=5000 -benchtime 10x.
func BenchmarkFleet(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 20000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "fleet.json")
			if err := save.File(b.Context(), fleetWithWaitingClaim(nodes, 4*nodes), path); err != nil {
				b.Fatal(err)
			}
			var load, plain, explained time.Duration
			for b.Loop() {
				loaded := timed(func() *snapshot.Snapshot { return reload(b, path) }, &load)
				start := time.Now()
				askPlainly(b, loaded)
				plain += time.Since(start)

				var own time.Duration
				loaded = timed(func() *snapshot.Snapshot { return reload(b, path) }, &own)
				start = time.Now()
				explainAndPrint(b, loaded)
				explained += own + time.Since(start)
			}
			rounds := float64(b.N)
			plain += load
			b.ReportMetric(load.Seconds()/rounds, "load-s")
			b.ReportMetric(plain.Seconds()/rounds, "plain-s")
			b.ReportMetric(explained.Seconds()/rounds, "explain-s")
			b.ReportMetric(explained.Seconds()/plain.Seconds(), "ratio")
			b.ReportMetric(explained.Seconds()*1e6/rounds/float64(nodes), "us/node")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// timed adds the time that something takes, which starts without garbage of
// what was before.
func timed[T any](work func() T, sum *time.Duration) T {
	runtime.GC()
	start := time.Now()
	result := work()
	*sum += time.Since(start)
	return result
}

func reload(b *testing.B, path string) *snapshot.Snapshot {
	b.Helper()
	snap, err := load.Load(b.Context(), []string{path}, load.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return snap
}

// askPlainly is the allocator's bare verdict for every node.
func askPlainly(b *testing.B, snap *snapshot.Snapshot) {
	b.Helper()
	alloc, err := allocator.New(b.Context(), facts.New(snap))
	if err != nil {
		b.Fatal(err)
	}
	claims := []*resourceapi.ResourceClaim{snap.Claim("waiting", "waiting")}
	for _, node := range snap.Nodes {
		if verdict := alloc.Check(b.Context(), node, claims); verdict.Outcome != allocator.DoesNotFit {
			b.Fatalf("node %s: %s %v", node.Name, verdict.Outcome, verdict.Err)
		}
	}
}

func explainAndPrint(b *testing.B, snap *snapshot.Snapshot) {
	b.Helper()
	e, err := explain.Explain(b.Context(), snap, explain.Options{Kind: api.KindClaim, Namespace: "waiting", Name: "waiting"})
	if err != nil {
		b.Fatal(err)
	}
	if e.Verdict != api.DoesNotFit || e.Conflict == nil || len(e.Remedies) == 0 {
		b.Fatalf("%s: %s", e.Verdict, e.Summary)
	}
	if err := render.Explanation(io.Discard, e, render.Options{Width: 140}); err != nil {
		b.Fatal(err)
	}
}

// fleetWithWaitingClaim adds a claim that wants one device more than any node
// has.
func fleetWithWaitingClaim(nodes, claims int) *snapshot.Snapshot {
	snap := fleet.Fleet(nodes, 8, claims)
	snap.Claims = append(snap.Claims, waitingClaim())
	return snap
}

func waitingClaim() *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "waiting", Name: "waiting", UID: "waiting"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: fleet.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 9,
			}}},
		}},
	}
}
