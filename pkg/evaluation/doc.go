// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evaluation evaluates CEL expressions on the devices of a cluster. It reports
// where an expression is true, false or fails, by driver, node and value; suggests
// corrections, compares two expressions, finds the expressions that single out a device,
// and completes words.
//
// It evaluates through pkg/allocator/selector and says nothing about claims and whether
// they fit. pkg/commands and pkg/tui may import it.
package evaluation
