// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "golang.org/x/sys/unix"

// readTermios and writeTermios are the requests for the settings of a terminal.
const readTermios, writeTermios = unix.TCGETS, unix.TCSETS
