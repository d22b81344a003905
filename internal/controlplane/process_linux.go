// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import "syscall"

// dieWithParent makes the kernel end a component when the test dies, however
// it dies. The process group of its own keeps a Ctrl-C in the terminal away
// from it, so that the test can still stop everything in order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
