// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package idle knows what becomes of devices: who uses each of them or, if nobody
// does, what blocks it, which waiting requests could use it, and why they do not get
// it. It asks the question of pkg/explain from the other side.
//
// Every check and every verdict is one of pkg/explain. It prints nothing and talks
// to no cluster. pkg/tui and pkg/commands may import it.
package idle
