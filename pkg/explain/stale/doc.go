// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stale knows which explanations a change of the cluster can have made wrong,
// so that the others need not be made again.
//
// Where it cannot be known, an explanation counts as wrong. The package explains
// nothing. Only pkg/tui may import it.
package stale
