// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

// fieldManager names this program to the API server as the author of changes.
const fieldManager = "kubectl-dra"

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)
