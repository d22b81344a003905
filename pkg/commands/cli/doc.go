// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli has the common parts of all verbs: the flags for reading and printing, help
// in groups, notes, errors with a way out, exit codes, and the names that users type: types and
// their short names, names without a type, and completions for a shell.
//
// It knows no verb. It reads through pkg/snapshot, and prints explanations through
// pkg/render or the printers of cli-runtime, made safe for a terminal. pkg/commands and the
// packages below it may import it.
package cli
