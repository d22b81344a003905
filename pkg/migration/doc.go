// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration finds what has to change so that pods get from DRA drivers what device plugins
// give them: by node, by workload and by quota, and in which order. It stands above pkg/inventory and pkg/whatif; it
// reads nothing and prints nothing.
package migration
