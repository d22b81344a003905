// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conflict knows why claims do not fit on the nodes that come closest,
// and what would make them fit: the facts that hold there, a minimal set of them
// that cannot all hold, and changes that were tried with the scheduler's
// allocator.
//
// It gives no verdict, and does not build questions: it asks again through
// [Case.Ask]. pkg/explain may import it.
package conflict
