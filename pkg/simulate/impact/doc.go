// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package impact says what a change of a cluster would do to its pods: who leaves, who
// loses devices, where replacements fit, and which waiting pods fit no longer or at last.
//
// A [Change] is a function of a snapshot. What becomes of pods is simulated step by step
// (pkg/simulate), and why one fits nowhere pkg/explain says. The package changes nothing
// and prints nothing. Only pkg/commands imports it.
package impact
