// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package garbage sets how often a process collects garbage, by what it does.
package garbage

import (
	"context"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// garbageLimit is the limit for garbage in memory. Most live memory is one snapshot.
type garbageLimit struct {
	// percent is relative to the live heap.
	percent int
	// reserved bytes count as live memory, so that there are few collections while there is
	// little in memory. Nothing is written there: it takes address space and no memory.
	reserved int
}

const (
	// smallReserve is an amount that any machine has room for.
	smallReserve = 32 << 20
	// largeReserve lets a program that answers and ends load a cluster of a few thousand
	// nodes with one collection. A small cluster makes far less than 380 MiB of garbage.
	largeReserve = 640 << 20
	// mostMemory limits the live memory and the garbage of such a program together, as long
	// as the garbage is not less than answerPercent of the live memory.
	mostMemory    = 380 << 20
	answerPercent = 60
	// mostGarbage limits the garbage of a program that goes on, as long as it is not less
	// than leastPercent of the live heap: then collections would take too long altogether.
	// mostPercent is for small clusters. Until a cluster is loaded, garbage may be
	// garbageOfLoading times as much; later, while work makes much of it, garbageOfWork
	// times, so that there is one collection in untilCollected and not several.
	mostGarbage               = 32 << 20
	garbageOfLoading          = 3
	garbageOfWork             = 6
	untilCollected            = 6 * time.Second
	leastPercent, mostPercent = 10, 50
	loaded                    = 10 * time.Second
	// soon is the age at which a running program is likely to go on, where it matters how
	// much memory it holds.
	soon = 30 * time.Second
	// often is the interval at which a program that goes on returns unused memory, if that
	// is worthwhile.
	often      = 20 * time.Second
	worthwhile = 12 << 20
)

// Limit sets how often garbage is collected, unless the user has set that with GOGC or GOMEMLIMIT.
// A process that stays follows a cluster, and has to hold little memory; others answer and end. It
// holds until release is called.
func Limit(ctx context.Context, stays bool) (release func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	var reserved atomic.Pointer[[][]byte]
	set := func(limit garbageLimit) {
		// Reserving memory is no reason to collect.
		debug.SetGCPercent(-1)
		reserve := setAside(limit.reserved)
		reserved.Store(&reserve)
		debug.SetGCPercent(limit.percent)
	}
	if stays {
		set(garbageLimit{percent: mostPercent, reserved: smallReserve})
		go saveMemory(ctx)
		return func() { runtime.KeepAlive(reserved.Load()) }
	}
	later := garbageLimit{percent: 80, reserved: smallReserve}
	// Windows commits all reserved memory.
	if bits.UintSize < 64 || runtime.GOOS == "windows" {
		set(later)
		return func() { runtime.KeepAlive(reserved.Load()) }
	}
	now := garbageLimit{percent: answerPercent, reserved: largeReserve}
	set(now)
	var isLater atomic.Bool
	stop := afterCollections(func() {
		limit := now
		if isLater.Load() {
			limit = later
		}
		debug.SetGCPercent(limit.percentWith(liveBytes()))
	})
	timer := time.AfterFunc(soon, func() {
		isLater.Store(true)
		set(later)
		// Until the next collection, what was reserved counts as live.
		runtime.GC()
	})
	return func() {
		stop()
		timer.Stop()
		runtime.KeepAlive(reserved.Load())
	}
}

// setAside allocates so many bytes that are never written. If memory begins with a used
// part, the runtime zeroes all of it: of several blocks, only that one.
func setAside(bytes int) [][]byte {
	const part = 16 << 20
	var parts [][]byte
	for ; bytes > 0; bytes -= part {
		parts = append(parts, make([]byte, min(bytes, part)))
	}
	return parts
}

// saveMemory keeps little garbage until the context is done. Until a cluster was read, the
// limit is higher: reading would take longer.
func saveMemory(ctx context.Context) {
	loading := afterCollections(func() { boundGarbage(garbageOfLoading * mostGarbage) })
	select {
	case <-ctx.Done():
		loading()
		return
	case <-time.After(loaded):
	}
	loading()
	var last allocated
	defer afterCollections(func() {
		now := allocatedNow()
		boundGarbage(garbageBetween(last, now))
		last = now
	})()
	releaseMemory(ctx)
}

// allocated is the number of bytes allocated until a moment.
type allocated struct {
	bytes uint64
	at    time.Time
}

func allocatedNow() allocated {
	bytes := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(bytes)
	return allocated{bytes[0].Value.Uint64(), time.Now()}
}

// garbageBetween returns the garbage limit until the next collection: the amount made in
// untilCollected at the rate between the last two.
func garbageBetween(before, last allocated) uint64 {
	took := last.at.Sub(before.at).Seconds()
	if before.at.IsZero() || took <= 0 {
		return mostGarbage
	}
	made := float64(last.bytes-before.bytes) / took * untilCollected.Seconds()
	return uint64(min(max(made, mostGarbage), garbageOfWork*mostGarbage))
}

// boundGarbage sets the garbage limit from the live heap: for a large cluster, half of it
// is more than a view needs.
func boundGarbage(most uint64) {
	debug.SetGCPercent(garbagePercent(liveBytes(), most))
}

// liveBytes returns the live bytes at the last collection.
func liveBytes() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// percentWith returns the percentage for a program that answers and ends, with the given live
// bytes, among them the reserved ones: less than the limit has for a large cluster.
func (l garbageLimit) percentWith(live uint64) int {
	reserved := uint64(l.reserved)
	own := max(live, reserved) - reserved
	garbage := max(mostMemory-min(own, mostMemory), own*answerPercent/100)
	return int(min(100*garbage/(own+reserved), uint64(l.percent)))
}

// garbagePercent returns the percentage for the given live bytes and limit of garbage.
func garbagePercent(live, most uint64) int {
	return int(min(max(100*most/max(live, 1), leastPercent), mostPercent))
}

// afterCollections calls a function after each garbage collection until stop is called.
func afterCollections(do func()) (stop func()) {
	var stopped atomic.Bool
	// Nothing refers to the sentinel, so that the next collection finds it.
	var watch func()
	watch = func() {
		runtime.AddCleanup(new([16]byte), func(struct{}) {
			if !stopped.Load() {
				do()
				watch()
			}
		}, struct{}{})
	}
	watch()
	return func() { stopped.Store(true) }
}

// releaseMemory repeatedly returns memory to the operating system that was needed while a
// cluster was read, or a view worked out, until the context is done. The runtime keeps most
// of it for itself. That takes a garbage collection, which is left out if there is little
// to return: little more than the last one could not return, between live objects.
func releaseMemory(ctx context.Context) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	var kept uint64
	for {
		if unused, live := unusedMemory(); unused > max(live/10, kept)+worthwhile {
			debug.FreeOSMemory()
			kept, _ = unusedMemory()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// unusedMemory returns how many bytes the heap holds apart from the live bytes at the last
// collection. Garbage that was not collected yet is part of the objects; the goal of the
// heap says how much of them that can be.
func unusedMemory() (unused, live uint64) {
	held := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(held)
	inUse, live := held[0].Value.Uint64()+held[1].Value.Uint64()+held[2].Value.Uint64(), held[3].Value.Uint64()
	return inUse - min(live, inUse), live
}
