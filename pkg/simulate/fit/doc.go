// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fit knows how many more copies of something fit in a cluster: now, and once
// all claims are released, on which nodes, and what stops the next one.
//
// Without something to copy, it counts claims of the shapes that a cluster's claims have,
// and looks for pods that would make room for more on another node.
//
// It counts with pkg/explain/copies and asks pkg/explain for reasons. It prints nothing;
// pkg/commands may import it.
package fit
