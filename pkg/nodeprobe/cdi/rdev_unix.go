// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package cdi

import (
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// numberOf returns the major:minor number of a device file.
func numberOf(info fs.FileInfo) (number string, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	// The size of Rdev depends on the platform.
	rdev := uint64(stat.Rdev) //nolint:unconvert // int32 on darwin
	return fmt.Sprintf("%d:%d", unix.Major(rdev), unix.Minor(rdev)), true
}
