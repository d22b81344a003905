// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplane

import "syscall"

// dieWithParent has no counterpart elsewhere: a test that is killed leaves its
// components running.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
