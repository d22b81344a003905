// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration compares what device plugins and DRA drivers offer on the nodes of a cluster.
// It stands above pkg/cluster; it reads nothing and prints nothing.
package migration
