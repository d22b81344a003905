// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes what a cluster is like as one page of HTML that loads nothing: status and
// causes, capacity, a map of the nodes, the answer for what waits, partitions, the queue, usage,
// and histories of a recording. [Of] gathers it, with the answers that every other face shows, and
// [Content.Write] writes it. A [Server] serves the page of a cluster that changes.
//
// The package decides nothing: pkg/cause, pkg/forecast and pkg/inventory answer, pkg/drawing draws,
// and pkg/render has the words. Only pkg/commands imports it.
package report
