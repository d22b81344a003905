// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplane

import "syscall"

// dieWithParent returns nil: elsewhere than on Linux, a killed test leaves its
// components running.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
