// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heatmap draws many things as a cell each, in groups, with a cursor on one.
//
// It knows no cluster: a cell is a sign and what it means. Only pkg/tui may import it.
package heatmap
