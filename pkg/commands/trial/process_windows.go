// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"os"
	"strconv"
)

// runs reports whether there is a process of this host: on Windows, only one that
// exists is found.
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
