// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor knows the checks of a cluster for problems with Dynamic Resource
// Allocation that no pod reports. [Checks] lists them, each with a stable code, its meaning
// and advice.
//
// A check uses the packages below, and returns its findings as data. It never changes
// anything, and where it cannot know it says so. pkg/render, pkg/tui and pkg/commands may
// import it.
package doctor
