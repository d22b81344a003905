// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package garbage

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestSetAsideTakesNoMemory sets memory aside that begins where memory was used before.
func TestSetAsideTakesNoMemory(t *testing.T) {
	used := make([]byte, 96<<20)
	for i := range used {
		used[i] = 1
	}
	used = nil //nolint:ineffassign,wastedassign // It is garbage from here on.
	runtime.GC()
	runtime.GC()
	before := resident(t)
	reserve := setAside(largeReserve)
	if took := resident(t) - before; took > 128<<20 {
		t.Errorf("%d MiB that were set aside take %d MiB", largeReserve>>20, took>>20)
	}
	runtime.KeepAlive(reserve)
}

// resident returns how many bytes of memory the process has.
func resident(t *testing.T) int {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(string(bytes.Fields(data)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
