// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge draws the lines above and below a screen: what is looked at, the names of the
// views or the way to what is shown, and the keys that are of use.
//
// It keeps no state. Only pkg/tui may import it.
package edge
