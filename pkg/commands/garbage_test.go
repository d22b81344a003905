// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"runtime"
	"testing"
)

// TestGarbagePercent allows less garbage, the more is live, but never so little that
// collections take most of the time.
func TestGarbagePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 50, 32 << 20: 50, 96 << 20: 50, 160 << 20: 30, 320 << 20: 15, 4 << 30: 15} {
		if got := garbagePercent(live, mostGarbage); got != want {
			t.Errorf("%d MiB are live: %d percent, want %d", live>>20, got, want)
		}
	}
}

// TestGarbageWhileLoading allows more garbage until a cluster is loaded, but not without bounds.
func TestGarbageWhileLoading(t *testing.T) {
	for live, want := range map[uint64]int{0: 50, 96 << 20: 50, 320 << 20: 30, 4 << 30: 15} {
		if got := garbagePercent(live, garbageOfLoading*mostGarbage); got != want {
			t.Errorf("%d MiB are live: %d percent, want %d", live>>20, got, want)
		}
	}
}

// TestAfterCollections calls again after each collection, and not once it is stopped.
func TestAfterCollections(t *testing.T) {
	called := make(chan struct{}, 100)
	stop := afterCollections(func() { called <- struct{}{} })
	for range 3 {
		runtime.GC()
		<-called
	}
	stop()
	runtime.GC()
	runtime.GC()
	if len(called) > 1 {
		t.Errorf("called %d times after it was stopped", len(called))
	}
}
