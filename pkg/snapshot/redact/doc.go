// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact makes a snapshot that can be shown to strangers. It knows how names,
// texts and values are replaced; package kinds says of which fields.
//
// It never decides what a snapshot has, and reads and writes no files. pkg/commands
// imports it.
package redact
