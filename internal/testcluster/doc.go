// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testcluster builds clusters for tests from small pieces, in the style
// of the structured allocator's own tests: slices with devices, claims with
// requests, pods, nodes, and a snapshot of them all. It knows the API and
// snapshots, nothing that is computed from them, so that every package above
// pkg/snapshot can use it in its tests. Only tests import it.
package testcluster
