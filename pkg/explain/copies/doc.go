// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package copies counts how many equal copies of a pod fit, each with claims of its own
// from templates. One after another gets its devices, which are reserved for the next
// one, as kube-scheduler does.
//
// Nodes that have nothing in common are filled at the same time, and of those that are
// equivalent one for all, see [Coupled] and [Fill]. Where copies on one node matter to
// those on others, they are placed step by step, see [Sequence], and counting says how
// many can fit at most, see [Most].
//
// It says nothing of why. pkg/explain and the packages above may import it.
package copies
