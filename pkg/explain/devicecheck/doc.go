// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devicecheck knows what a device is and has, which of the checks of
// eligibility.Steps it passes for a request, one by one, and what became of it in an
// answer: picked, or why not.
//
// It does not count devices and asks no allocator. pkg/explain imports it.
package devicecheck
