// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package top is the verb top: it connects the dashboard to a cluster or a file, and
// makes the changes that somebody confirmed there.
//
// The dashboard itself is pkg/tui. Only pkg/commands may import it.
package top
