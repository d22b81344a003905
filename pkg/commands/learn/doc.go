// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package learn has the verb learn: exercises on the example cluster, which is part of the
// program. Each has a pod that does not get its devices, and a manifest to correct; the
// allocator decides whether a correction works.
//
// docs/start.md shows the same exercises. Only pkg/commands imports it.
package learn
