// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package trial

import (
	"errors"
	"strconv"
	"syscall"
)

// runs reports whether a process of this host exists.
func runs(pid string) bool {
	number, err := strconv.Atoi(pid)
	if err != nil || number < 1 {
		return false
	}
	err = syscall.Kill(number, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
