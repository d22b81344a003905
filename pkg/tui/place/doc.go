// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place knows where the dashboard can go from an item, as plain data from which a
// screen can be made.
//
// Only pkg/tui and packages below it may import it.
package place
