// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place knows where the dashboard can go from an item: what is behind it, as plain
// data that a screen can be made of.
//
// Only pkg/tui and packages below it may import it.
package place
