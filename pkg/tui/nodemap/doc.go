// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodemap knows how nodes look as signs: a strip of their devices, or one cell for
// each node, in groups, and how much room is left on them for large claims.
//
// It keeps no state. Only pkg/tui may import it.
package nodemap
