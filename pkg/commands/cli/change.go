// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// FieldManager is the name of this program as the author of changes.
const FieldManager = "kubectl-dra"

// Values of --dry-run.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// DryRuns returns the values of --dry-run.
func DryRuns() []string { return []string{DryRunNone, DryRunClient, DryRunServer} }
