// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"os"
	"strconv"
)

// runs reports whether a process exists: on Windows, only existing ones are found.
func runs(pid string) bool {
	number, err := strconv.Atoi(pid)
	if err != nil {
		return false
	}
	process, err := os.FindProcess(number)
	if err != nil {
		return false
	}
	return process.Release() == nil
}
