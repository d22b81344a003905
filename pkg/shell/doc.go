// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shell knows how to write a command so that it can be pasted: quoting,
// and how kubectl takes kinds and names. It runs nothing. Every package that
// suggests commands may import it.
package shell
