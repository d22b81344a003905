// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocators has a test that asks the allocators of all supported patch releases, each
// built from its own code, and compares what they say with the verdicts of this program for
// the same release: each difference is a line that pkg/behavior lacks. `make test-releases`
// runs it.
package allocators
