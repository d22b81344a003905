// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"io/fs"
	"net"

	"golang.org/x/sys/unix"
)

// connect connects to the socket at a path without links. It keeps the file open while it
// checks its type, so that nobody can replace it, and connects through the descriptor, so
// that the path may be longer than the 108 bytes of an address.
func connect(ctx context.Context, here string) (net.Conn, error) {
	fd, err := unix.Open(here, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: here, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: here, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, errNotSocket
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", fd))
}
