// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package advice says what would have to be different where claims do not fit: a minimal set
// of facts that conflict on a node, the changes that make the claims fit, each verified with
// the allocator, and the outlook without any change.
//
// Only pkg/explain imports it.
package advice
