// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package counting decides whether claims fit on one node by counting, where the
// allocator would try all combinations of devices. It writes the funnels of a
// question as a problem for pkg/allocator/decision, and knows on which nodes that
// is worth the while.
//
// What it says never overrules the allocator. Where numbers are too large, or a
// selector may fail, it does not know.
package counting
