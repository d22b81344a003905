// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load is the way from files into a snapshot: it finds the texts in what
// the user named, cuts them into objects, and decodes these on all processors,
// within bounds of time and memory.
//
// It never asks a server. Every error about the input is an [*InputError] that says
// where it is. Whatever reads files imports it: pkg/commands and tests.
package load
