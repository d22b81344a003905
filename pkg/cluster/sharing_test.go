// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestLayers compares a map of layers with a plain map under the same changes.
func TestLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	want, got := map[int]int{}, layers[int, int]{}
	kept, keptWant := got, maps.Clone(want)
	for step := range 2000 {
		changed := map[int]int{}
		for range r.IntN(4) {
			changed[r.IntN(500)] = step
		}
		maps.Copy(want, changed)
		got = got.With(changed)
		if step == 1000 {
			kept, keptWant = got, maps.Clone(want)
		}
		if len(got.list) > 10 {
			t.Fatalf("%d layers for %d keys", len(got.list), len(want))
		}
	}
	for l, m := range map[*layers[int, int]]map[int]int{&got: want, &kept: keptWant} {
		if all := maps.Collect(l.All()); !maps.Equal(all, m) {
			t.Errorf("got %v, want %v", all, m)
		}
		for key, value := range m {
			if found, ok := l.Get(key); !ok || found != value {
				t.Errorf("key %d: got %d, want %d", key, found, value)
			}
		}
	}
}
