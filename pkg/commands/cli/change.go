// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// FieldManager names this program to the API server as the author of changes.
const FieldManager = "kubectl-dra"

// The values of --dry-run.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)
