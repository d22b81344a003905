// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"fmt"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
)

// BenchmarkShapes counts claims of all shapes in a mixed fleet.
func BenchmarkShapes(b *testing.B) {
	for _, nodes := range []int{600, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			snap := fleet.Mixed(nodes)
			fleet.AddWaiting(snap, 100)
			b.ReportAllocs()
			for b.Loop() {
				state := cluster.New(snap)
				out, err := forecast.Shapes(b.Context(), state, func(*api.ClaimShape, int, int) {})
				if err != nil {
					b.Fatal(err)
				}
				packed := 0
				for i := range out.Shapes {
					if p := out.Shapes[i].Packed; p != nil {
						packed += p.AtLeast - out.Shapes[i].Now.AtLeast
					}
				}
				b.ReportMetric(float64(len(out.Shapes)), "shapes")
				b.ReportMetric(float64(packed), "won")
			}
		})
	}
}
