// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package cli

import "golang.org/x/sys/unix"

// NoEcho keeps a terminal from showing the keys that are typed until restore is called: a program that
// takes the whole screen reads them later. Ctrl-C still interrupts. For what is no terminal it does
// nothing.
func NoEcho(stream any) (restore func()) {
	fd, ok := Terminal(stream)
	if !ok {
		return func() {}
	}
	before, err := unix.IoctlGetTermios(fd, readTermios)
	if err != nil {
		return func() {}
	}
	silent := *before
	silent.Lflag &^= unix.ECHO | unix.ICANON
	if unix.IoctlSetTermios(fd, writeTermios, &silent) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, writeTermios, before) }
}
