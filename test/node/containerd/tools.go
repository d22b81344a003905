// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package containerd pins the container runtime that the tests run.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
