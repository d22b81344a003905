// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fleetOf makes a cluster for one of the channels, with every other device in
// use, and a claim for four devices.
func fleetOf(nodes int, gates tc.Gates) (*snapshot.Snapshot, []*resourceapi.ResourceClaim) {
	snap := fleet.Fleet(nodes, 8, nodes*4)
	snap.Gates = tc.Snapshot(gates).Gates
	c := tc.Claim("c", tc.Request("r", snap.Classes[0].Name, 4))
	return snap, []*resourceapi.ResourceClaim{c.ResourceClaim}
}

func BenchmarkNew(b *testing.B) {
	snap, _ := fleetOf(5000, tc.IncubatingGates())
	for b.Loop() {
		Of(cluster.New(snap))
	}
}

// BenchmarkCheckAll asks one question about a cluster, including the set-up of the
// allocator.
func BenchmarkCheckAll(b *testing.B) {
	for _, channel := range []string{"stable", "incubating", "experimental"} {
		for _, nodes := range []int{1000, 5000} {
			b.Run(fmt.Sprintf("%s/%d", channel, nodes), func(b *testing.B) {
				snap, claims := fleetOf(nodes, tc.Channels()[channel])
				for b.Loop() {
					a := Of(cluster.New(snap))
					requireAnswers(b, a.CheckAll(context.Background(), snap.Nodes, fixedClaims(claims...)))
				}
			})
		}
	}
}

// BenchmarkUpstream asks the same with one plain allocator for all nodes.
func BenchmarkUpstream(b *testing.B) {
	for _, channel := range []string{"stable", "incubating", "experimental"} {
		b.Run(fmt.Sprintf("%s/1000", channel), func(b *testing.B) {
			snap, claims := fleetOf(1000, tc.Channels()[channel])
			for b.Loop() {
				a := Of(cluster.New(snap))
				ctx := klog.NewContext(context.Background(), klog.Logger{})
				upstream, err := structured.NewAllocator(ctx, a.features, a.state().AllocatedState, classLister{snap}, published(a.Facts), a.celCache)
				if err != nil {
					b.Fatal(err)
				}
				for _, n := range snap.Nodes {
					if _, err := upstream.Allocate(ctx, n, claims); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkPoolsFor(b *testing.B) {
	snap, _ := fleetOf(5000, tc.IncubatingGates())
	a := newAllocator(b, snap)
	for b.Loop() {
		for _, n := range snap.Nodes {
			if _, err := a.Facts.Pools.For(n); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkNodeFit(b *testing.B) {
	snap, _ := fleetOf(5000, tc.IncubatingGates())
	p := tc.Pod("p", tc.Requesting("cpu=1"))
	for b.Loop() {
		a := Of(cluster.New(snap))
		var fit []*corev1.Node
		for _, n := range snap.Nodes {
			if a.Facts.Nodes.Fit(p, n) == nil {
				fit = append(fit, n)
			}
		}
		if len(fit) == 0 {
			b.Fatal("the pod fits nowhere")
		}
	}
}

func requireAnswers(b *testing.B, verdicts []NodeVerdict) {
	b.Helper()
	for i, v := range verdicts {
		if v.Outcome != Fits && v.Outcome != DoesNotFit {
			b.Fatalf("node %d: %s (%v)", i, v.Outcome, v.Err)
		}
	}
}
