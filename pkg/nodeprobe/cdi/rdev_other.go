// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package cdi

import "io/fs"

// numberOf returns the major:minor number of a device file, which only UNIX has.
func numberOf(fs.FileInfo) (number string, ok bool) { return "", false }
