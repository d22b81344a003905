// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package save writes a snapshot as a file that reads back to an equal one. It
// knows the formats, and that a file is there completely or not at all.
//
// It never leaves anything out and reads nothing. pkg/commands and pkg/tui import it.
package save
