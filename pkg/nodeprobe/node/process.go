// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// maxProcFile is far more than the size of a file about the control groups of a process.
const maxProcFile = 64 << 10

// PodOf returns the UID of the pod that a process of the node is in; empty if it is in none,
// has ended, or is only in another PID namespace.
func (h *Host) PodOf(pid int) string {
	groups, err := h.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid), maxProcFile)
	if err != nil {
		return ""
	}
	pod := regexp.MustCompile(`pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:[./]|$)`)
	for line := range strings.Lines(string(groups)) {
		// The systemd driver writes the UID with underscores.
		if found := pod.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			return strings.ReplaceAll(found[1], "_", "-")
		}
	}
	return ""
}

// PodOfServer returns the UID of the pod whose process listens at a socket; empty if it is
// in none, or if that is not known. inside is as for [Host.Dial].
func (h *Host) PodOfServer(ctx context.Context, path, inside string) string {
	conn, err := h.connect(ctx, path, inside)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	pid := peer(conn)
	if pid == 0 {
		return ""
	}
	return h.PodOf(pid)
}
