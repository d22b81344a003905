// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// reopenClosedOutput makes writing to standard output fail if the program was
// started without one (>&-). The Go runtime has put /dev/null in its place by
// then, which takes everything: /dev/null that is open for reading and writing,
// unlike that of a shell (>/dev/null), and not among those that whoever starts a
// program without a terminal gives it for all its output.
func reopenClosedOutput() {
	if !isRuntimeNull(unix.Stdout) || isRuntimeNull(unix.Stderr) {
		return
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	// Writing fails with a bad file descriptor, as if there was none.
	_ = unix.Dup3(null, unix.Stdout, 0)
	_ = unix.Close(null)
}

// isRuntimeNull reports whether a file descriptor is /dev/null as the Go
// runtime opens it. Python opens it with O_CLOEXEC.
func isRuntimeNull(fd int) bool {
	var stat, null unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || unix.Stat(os.DevNull, &null) != nil || stat.Rdev != null.Rdev || stat.Mode != null.Mode {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&(unix.O_ACCMODE|unix.O_CLOEXEC) == unix.O_RDWR
}
