// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"fmt"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
)

// BenchmarkPlan plans pods of 20 shapes that wait in a mixed fleet.
func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{600, 120}, {5000, 1000}} {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d", size.nodes, size.pods), func(b *testing.B) {
			snap := fleet.Mixed(size.nodes)
			fleet.AddWaiting(snap, size.pods)
			b.ReportAllocs()
			for b.Loop() {
				state := cluster.New(snap)
				out, err := forecast.MakePlan(b.Context(), state, false)
				if err != nil {
					b.Fatal(err)
				}
				if n := len(out.Pods); n != size.pods || out.Counts.Placed == 0 || out.Counts.Placed == n {
					b.Fatalf("%d pods: %+v", n, out.Counts)
				}
			}
		})
	}
}
