// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package look is how the dashboard draws: what colors mean, the signs that stand for
// devices, bars, and frames around parts of a screen.
//
// It knows no cluster and keeps no state. Only pkg/tui and the packages below it may
// import it.
package look
