// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package cli

// NoEcho does nothing where the settings of a terminal are others than those of Unix.
func NoEcho(any) (restore func()) { return func() {} }
