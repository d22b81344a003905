// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact makes a snapshot that can be shown to strangers. It knows which
// fields of which kinds stay and why; everything that no rule keeps is hidden.
//
// It never decides what a snapshot has, and reads and writes no files. pkg/commands
// imports it.
package redact
