// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import (
	"context"
	"net"
	"os"
)

// longestAddress limits the length of a socket's path to the shortest addresses of these
// systems.
const longestAddress = 103

// connect connects to the socket at a path without links.
func connect(ctx context.Context, here string) (net.Conn, error) {
	info, err := os.Lstat(here)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Type() != os.ModeSocket:
		return nil, errNotSocket
	case len(here) > longestAddress:
		return nil, errTooLong
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", here)
}

// peer returns 0: these systems do not say which process is at the other end.
func peer(net.Conn) int { return 0 }
