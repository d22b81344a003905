// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history follows the answer about one target through the states of a cluster, one after
// the other: when the verdict changed, which changes did it, and which claims got devices that the
// target could have used. A state is decided only if something changed that decides about devices,
// so that answers that time alone changes are noticed with the next change. The package stands
// above pkg/diff; it reads nothing and prints nothing.
package history
