// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drawing draws answers as SVG: the funnel of a request, the queue, what a change moves,
// how many copies fit, trees, partitions, and a history. A [Drawing] stands alone in a file, or in
// a page that has [Style]. Trees are also written for Graphviz and Mermaid.
//
// The package decides nothing and reads no cluster: it draws objects of pkg/api/v1alpha1, with the
// words of pkg/render. pkg/report and pkg/commands import it.
package drawing
