// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
)

func shapes(t *testing.T, parts ...any) *api.FitShapes {
	t.Helper()
	snap := tc.Cluster(parts...)
	tc.Unchanged(t, snap)
	s := cluster.New(snap)
	found, err := forecast.Shapes(t.Context(), s, func(*api.ClaimShape, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// uses returns a pod on a node with a claim that has devices there.
func uses(name, node string, first, count int) []any {
	claim := tc.Claim(name, tc.GPUs("gpu", int64(count))).ReservedFor(name, string(tc.UID(name)))
	for i := range count {
		claim = claim.Holding(fmt.Sprintf("%s/gpu-%d", node, first+i))
	}
	return []any{claim, tc.Pod(name, tc.Using(name), tc.RunningOn(node))}
}

func count(c *api.CopyCount) string {
	if c == nil {
		return "-"
	}
	return english.Between(c.AtLeast, c.AtMost)
}

// TestShapes covers two nodes with four devices, of which one pod each uses two.
func TestShapes(t *testing.T) {
	parts := append(uses("a", "n1", 0, 2), uses("b", "n2", 0, 2)...)
	parts = append(parts, tc.Nodes("n1", "n2", "n3"), tc.Pool("n1", tc.Devices(4)...), tc.Pool("n2", tc.Devices(4)...),
		tc.Template("pair", tc.GPUs("another-name", 2)), tc.Template("both", tc.GPUs("x", 1), tc.GPUs("y", 1)))
	found := shapes(t, parts...)
	var got []string
	for i := range found.Shapes {
		s := &found.Shapes[i]
		line := fmt.Sprintf("%d: now %s, packed %s, released %s, %d claims", s.Shape.Devices, count(&s.Now), count(s.Packed), count(&s.Released), s.Claims)
		if s.LostPercent != nil {
			line += fmt.Sprintf(", %d%% lost", *s.LostPercent)
		}
		if m := s.Move; m != nil {
			line += fmt.Sprintf(", %s from %s to %s: %d", m.Pod, m.From, m.To, m.More)
		}
		got = append(got, line)
	}
	want := []string{
		"1: now 4, packed 4, released 8, 0 claims, 0% lost",
		"2: now 2, packed 2, released 4, 2 claims, 0% lost",
		"4: now 0, packed 1, released 2, 0 claims, 100% lost, a from n1 to n2: 1",
	}
	if !slices.Equal(got, want) || found.OtherClaims != 1 || found.NodeCount != 3 {
		t.Errorf("%d others, %d nodes\ngot  %q\nwant %q", found.OtherClaims, found.NodeCount, got, want)
	}
}

// TestPinnedPods covers two pods that share a claim: neither of them can be moved.
func TestPinnedPods(t *testing.T) {
	parts := uses("b", "n2", 0, 2)
	parts = append(parts,
		tc.Claim("a", tc.GPUs("gpu", 2)).Holding("n1/gpu-0").Holding("n1/gpu-1").ReservedFor("a", string(tc.UID("a"))).ReservedFor("c", string(tc.UID("c"))),
		tc.Pod("a", tc.Using("a"), tc.RunningOn("n1")), tc.Pod("c", tc.Using("a"), tc.RunningOn("n1")), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(4)...), tc.Pool("n2", tc.Devices(4)...))
	for _, s := range shapes(t, parts...).Shapes {
		if s.Shape.Devices == 4 && (s.Move == nil || s.Move.Pod != "b") {
			t.Errorf("got %+v, want b to move", s.Move)
		}
	}
}

// TestPackedProperty holds packed counts of small clusters against all ways in which
// their pods can be on the nodes.
func TestPackedProperty(t *testing.T) {
	won, possible := 0, 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 18))
		var parts []any
		free := []int{}
		var pods []int
		for n := range 2 + r.IntN(2) {
			name, devices := fmt.Sprintf("n%d", n), 2+r.IntN(7)
			parts = append(parts, tc.Nodes(name), tc.Pool(name, tc.Devices(devices)...))
			free = append(free, devices)
			for used := 0; used < devices && len(pods) < 7 && r.IntN(5) > 0; {
				want := min(1+r.IntN(3), devices-used)
				parts = append(parts, uses(fmt.Sprintf("p%d", len(pods)), name, used, want)...)
				pods = append(pods, want)
				used += want
			}
		}
		for _, s := range shapes(t, parts...).Shapes {
			best := bestPacked(free, pods, s.Shape.Devices)
			packed := s.Now
			if s.Packed != nil {
				packed = *s.Packed
			}
			if packed.AtLeast > best || packed.AtMost != nil && best > *packed.AtMost && s.Packed != nil || packed.AtLeast < s.Now.AtLeast {
				t.Errorf("seed %d: %s claims for %d fit if packed, in truth %d", seed, count(&packed), s.Shape.Devices, best)
			}
			won, possible = won+packed.AtLeast-s.Now.AtLeast, possible+best-s.Now.AtLeast
			if s.Packed == nil && best > s.Now.AtLeast && s.Released.AtLeast > s.Now.AtLeast {
				t.Errorf("seed %d: %d claims for %d fit if packed, %d now, and nothing was tried", seed, best, s.Shape.Devices, s.Now.AtLeast)
			}
		}
	}
	if t.Logf("%d of %d won", won, possible); won < possible/2 || possible < 20 {
		t.Errorf("the search wins %d of %d", won, possible)
	}
}

// bestPacked tries all nodes for each pod.
func bestPacked(free, pods []int, size int) int {
	if len(pods) == 0 {
		total := 0
		for _, n := range free {
			total += n / size
		}
		return total
	}
	best := -1
	for i := range free {
		if free[i] >= pods[0] {
			free[i] -= pods[0]
			best = max(best, bestPacked(free, pods[1:], size))
			free[i] += pods[0]
		}
	}
	return best
}

// TestShapesEnd ends the count when the user does.
func TestShapesEnd(t *testing.T) {
	s := cluster.New(tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...)))
	ctx, stop := context.WithCancel(t.Context())
	reported := 0
	_, err := forecast.Shapes(ctx, s, func(*api.ClaimShape, int, int) { reported++; stop() })
	if !errors.Is(err, context.Canceled) || reported != 1 {
		t.Errorf("%v after %d shapes, want it to end after the first one", err, reported)
	}
}
