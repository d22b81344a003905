// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strip removes from objects what nothing in this program reads, and keeps
// the few words of it that an explanation needs in annotations of its own.
//
// It never touches what decides about scheduling. What makes snapshots, or copies
// of them, imports it.
package strip
