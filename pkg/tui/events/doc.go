// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events knows what happened to claims, slices and taint rules while the dashboard
// looked, and says it: equal events in one line.
//
// It draws nothing. Only pkg/tui may import it.
package events
