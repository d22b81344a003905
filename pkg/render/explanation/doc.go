// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explanation draws the answers to "why": about a pod, a claim or a workload in full or
// for a small screen, with funnels and remedies; about a device or a node; and about an
// expression of CEL.
package explanation
