// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock fails if another process has the lock of the file. It is free again when the file is closed.
func lock(file *os.File) error {
	// Nothing is ever read there, so that the rest stays readable for others.
	const beyond = 1<<31 - 1
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{OffsetHigh: beyond})
}
