// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !cgo || !nvml

package nvidia

import "errors"

// hasNVML reports whether this build can ask NVML.
const hasNVML = false

func openNVML(string) (*Findings, error) {
	return nil, errors.New("this build cannot ask NVML: that takes Linux, cgo and the build tag nvml")
}

func noLibrary(error) bool { return false }
