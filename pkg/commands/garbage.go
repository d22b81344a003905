// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
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
	// soon is when a program that still runs is likely to be one that goes on, like
	// a dashboard, where it matters how much memory it holds.
	soon = 30 * time.Second
)

// limitGarbage sets how often garbage is collected, unless the user has set that
// with GOGC or GOMEMLIMIT. It holds until release is called.
func limitGarbage() (release func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	var reserved atomic.Pointer[[]byte]
	set := func(limit garbageLimit) {
		reserve := make([]byte, limit.reserved)
		reserved.Store(&reserve)
		debug.SetGCPercent(limit.percent)
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
