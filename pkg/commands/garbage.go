// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbagePercent is how much garbage may be in memory, in percent of what
	// stays. Most of that is one snapshot: collecting more often than by default
	// costs little, and saves a quarter of the peak for a large cluster.
	garbagePercent = 40
	// garbageBytes are always allowed. Below, each collection would gain next
	// to nothing.
	garbageBytes = 16 << 20
)

// limitGarbage sets how often garbage is collected, again after each
// collection until the context is done, unless the user has set it with GOGC.
func limitGarbage(ctx context.Context) {
	if ctx.Err() != nil || os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	stays := uint64(1 << 20)
	if live[0].Value.Kind() == metrics.KindUint64 {
		stays = max(stays, live[0].Value.Uint64())
	}
	debug.SetGCPercent(max(garbagePercent, int(100*garbageBytes/stays)))
	// The next collection finds this one.
	runtime.AddCleanup(new([16]byte), func(struct{}) { limitGarbage(ctx) }, struct{}{})
}
