// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devicecheck knows what a device is and has, and which of the checks of
// eligibility.Steps it passes for a request, one by one.
//
// It does not count devices and asks no allocator. pkg/explain imports it.
package devicecheck
