// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocators has tests that ask the allocators of all supported patch releases, their
// trackers of taints and their controllers that evict, each built from its own code, and compare
// what they say with what this program says of the same release: each difference is a line that
// pkg/cluster lacks. `make test-releases` runs them.
package allocators
