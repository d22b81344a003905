// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// garbagePercent is how much garbage may be in memory, in percent of what
	// stays. Most of that is one snapshot: a little less than by default saves a
	// sixth of the peak for a large cluster.
	garbagePercent = 80
	// reservedBytes count as memory that stays, so that there are few collections
	// while there is little in memory. Nothing is written there: it takes address
	// space and no memory.
	reservedBytes = 32 << 20
)

// limitGarbage sets how often garbage is collected, unless the user has set that
// with GOGC. It holds until release is called.
func limitGarbage() (release func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(garbagePercent)
	reserved := make([]byte, reservedBytes)
	return func() { runtime.KeepAlive(reserved) }
}
