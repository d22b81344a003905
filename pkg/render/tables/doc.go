// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tables knows the columns of tables of what there is in a cluster, such as pools and
// claims, the line below each table, and the details that a row has no room for. Package render
// draws tables.
package tables
