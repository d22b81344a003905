// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package cli

// NoEcho leaves the terminal as it is: NoEcho needs the settings of a Unix terminal.
func NoEcho(any) (restore func()) { return func() {} }
