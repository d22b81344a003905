// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff compares two states of a cluster: the objects that differ, the capacity of
// classes, the causes that began and ended, and the answers about pods that differ, each with a
// minimal set of changes that made the difference. The allocator verifies each set: it decides
// the new state with the set undone.
//
// [History] follows the answer about one target through the states of a recording: when the
// verdict changed, which changes did it, and which claims got devices that the target could have
// used. A state is decided only if something changed that decides about devices, so that answers
// that time alone changes are noticed with the next change.
//
// [Events] says what happened with a change, as far as people care; an [EventLog] keeps it.
//
// The package stands above pkg/cause and pkg/forecast; it reads nothing and prints nothing.
package diff
