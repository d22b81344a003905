// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package garbage

import (
	"runtime"
	"testing"
	"time"
)

// TestGarbagePercent allows less garbage, the more is live, but never so little that
// collections take most of the time.
func TestGarbagePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 50, 32 << 20: 50, 64 << 20: 50, 160 << 20: 20, 320 << 20: 10, 4 << 30: 10} {
		if got := garbagePercent(live, mostGarbage); got != want {
			t.Errorf("%d MiB are live: %d percent, want %d", live>>20, got, want)
		}
	}
}

// TestGarbageOfAnswers leaves small clusters what they have without a limit, and keeps live memory
// and garbage of larger ones together, unless collections would take too long.
func TestGarbageOfAnswers(t *testing.T) {
	limit := garbageLimit{percent: answerPercent, reserved: largeReserve}
	for live, want := range map[int]int{0: 380, 100: 280, 250: 150, 300: 180, 1000: 600} {
		garbage := (live + largeReserve>>20) * limit.percentWith(uint64(live<<20+largeReserve)) / 100
		if garbage > want || garbage < want-(live+largeReserve>>20)/100-1 {
			t.Errorf("%d MiB are live: %d MiB of garbage, want %d", live, garbage, want)
		}
	}
	later := garbageLimit{percent: 80, reserved: smallReserve}
	if got := later.percentWith(10<<20 + smallReserve); got != 80 {
		t.Errorf("10 MiB are live after a while: %d percent, want 80", got)
	}
}

// TestGarbageWhileLoading allows more garbage until a cluster is loaded, but not without bounds.
func TestGarbageWhileLoading(t *testing.T) {
	for live, want := range map[uint64]int{0: 50, 96 << 20: 50, 320 << 20: 30, 4 << 30: 10} {
		if got := garbagePercent(live, garbageOfLoading*mostGarbage); got != want {
			t.Errorf("%d MiB are live: %d percent, want %d", live>>20, got, want)
		}
	}
}

// TestGarbageOfWork allows more garbage while much of it is made, and no more than before while
// a cluster is merely followed.
func TestGarbageOfWork(t *testing.T) {
	at := time.Now()
	for _, test := range []struct {
		made uint64
		took time.Duration
		want uint64
	}{
		{32 << 20, 2 * time.Minute, mostGarbage},
		{32 << 20, 6 * time.Second, mostGarbage},
		{32 << 20, 3 * time.Second, 2 * mostGarbage},
		{32 << 20, time.Second / 10, garbageOfWork * mostGarbage},
		{128 << 20, 12 * time.Second, 2 * mostGarbage},
	} {
		before := allocated{1 << 30, at}
		if got := garbageBetween(before, allocated{before.bytes + test.made, at.Add(test.took)}); got != test.want {
			t.Errorf("%d MiB in %s: %d MiB, want %d", test.made>>20, test.took, got>>20, test.want>>20)
		}
	}
	if got := garbageBetween(allocated{}, allocated{1 << 30, at}); got != mostGarbage {
		t.Errorf("at the first collection: %d MiB", got>>20)
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
