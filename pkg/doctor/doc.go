// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor knows the checks of a cluster: what can be wrong with Dynamic
// Resource Allocation without any pod that says so. [Checks] is the list of all of
// them, each with a stable code, what it means and what to do about it.
//
// A check finds out by the packages below, and says what it found as data. It never
// changes anything, and where it cannot know it says so. pkg/render, pkg/tui and
// pkg/commands may import it.
package doctor
