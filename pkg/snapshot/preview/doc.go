// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview lays what a driver would publish over a snapshot, and says what
// that assumes.
//
// It never computes the slices of a preview: pkg/nodeprobe does. pkg/cluster and the
// packages above it import it.
package preview
