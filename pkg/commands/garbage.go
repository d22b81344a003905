// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// garbageLimit is how much garbage may be in memory. Most that stays is one
// snapshot.
type garbageLimit struct {
	// percent is that of what stays.
	percent int
	// reserved bytes count as memory that stays, so that there are few collections
	// while there is little in memory. Nothing is written there: it takes address
	// space and no memory.
	reserved int
}

const (
	// smallReserve is what any machine has room for.
	smallReserve = 32 << 20
	// largeReserve lets a program that answers and ends load a cluster of a few
	// thousand nodes, and answer, with one collection. The 430 MiB of garbage that there
	// are before it are no more than such a cluster takes itself; a small
	// cluster makes far less.
	largeReserve = 720 << 20
	// soon is when a program that still runs is likely to be one that goes on,
	// where it matters how much memory it holds.
	soon = 30 * time.Second
	// often is how often a program that is known to go on gives memory back that it does
	// not use, if that is more than worthwhile.
	often      = 20 * time.Second
	worthwhile = 32 << 20
)

// goesOn reports whether a command line is one that is left open, like a dashboard.
func goesOn(root *cobra.Command, args []string) bool {
	cmd, _, err := root.Find(args)
	return err == nil && cmd.Name() == "top" && !slices.Contains(args, "--once")
}

// limitGarbage sets how often garbage is collected, unless the user has set that
// with GOGC or GOMEMLIMIT. It holds until release is called.
func limitGarbage(ctx context.Context, stays bool) (release func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	var reserved atomic.Pointer[[]byte]
	set := func(limit garbageLimit) {
		reserve := make([]byte, limit.reserved)
		reserved.Store(&reserve)
		debug.SetGCPercent(limit.percent)
	}
	if stays {
		set(garbageLimit{percent: 50, reserved: smallReserve})
		go releaseMemory(ctx)
		return func() { runtime.KeepAlive(reserved.Load()) }
	}
	later := garbageLimit{percent: 80, reserved: smallReserve}
	// Windows sets memory aside for all that is reserved.
	if bits.UintSize < 64 || runtime.GOOS == "windows" {
		set(later)
		return func() { runtime.KeepAlive(reserved.Load()) }
	}
	set(garbageLimit{percent: 60, reserved: largeReserve})
	timer := time.AfterFunc(soon, func() { set(later) })
	return func() {
		timer.Stop()
		runtime.KeepAlive(reserved.Load())
	}
}

// releaseMemory returns memory to the operating system that was needed while a cluster was read,
// or a view worked out, until the context is done. The runtime keeps most of that for
// itself. That takes a garbage collection, which is left out if there is little to return.
func releaseMemory(ctx context.Context) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	// Garbage that was not collected yet is part of the objects; what the heap may grow to
	// says how much of them that can be.
	held := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/gc/heap/live:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(held)
		inUse, live := held[0].Value.Uint64()+held[1].Value.Uint64()+held[2].Value.Uint64(), held[3].Value.Uint64()
		if inUse > live+live/10+worthwhile {
			debug.FreeOSMemory()
		}
	}
}
