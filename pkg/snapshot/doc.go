// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot knows what a cluster says about Dynamic Resource
// Allocation at about one point in time, as plain data.
//
// There are two ways in: package collect asks a live API server, package files
// reads files. Both give a [*Snapshot] that nobody changes afterwards, so that
// every verb answers the same for a cluster and for a file of it. Package files
// writes one, too, package redact makes a copy that can be shown to strangers.
// [Snapshot.With] lays manifests over one, [WithPreview] what a driver would
// publish.
//
// The package never reads anything, and never decides anything about allocation.
// Other packages may import it unless .golangci.yaml says otherwise.
package snapshot
