// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff compares two states of a cluster: the objects that differ, the capacity of
// classes, the causes that began and ended, and the answers about pods that differ, each with a
// minimal set of changes that made the difference. The allocator verifies each set: it decides
// the new state with the set undone. The package stands above pkg/cause and pkg/forecast; it
// reads nothing and prints nothing.
package diff
