// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prune takes fields that nobody looks at out of a list of objects while it
// arrives from the API server, object by object, so that they are never decoded. It
// knows the protobuf format of Kubernetes, and the numbers of fields from the tags of
// the Go types.
//
// It never decides which fields are needed: those who read lists do.
// pkg/snapshot/collect, pkg/inventory and pkg/commands import it.
package prune
