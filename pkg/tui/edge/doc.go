// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge draws the lines above and below a screen: the cluster, the names of the
// views or the path to the screen, and the useful keys.
//
// It keeps no state. Only pkg/tui may import it.
package edge
