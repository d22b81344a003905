// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// Source is a snapshot, with facts that only its origin can tell.
type Source struct {
	Snap *snapshot.Snapshot
	// Namespace is the default namespace of names; empty if a file was read and nobody
	// chose a namespace.
	Namespace string
	// Clients are the clients of the cluster; nil for a file.
	Clients *collect.Clients
	// KindOf asks the cluster for the kind of a resource type; nil for a file.
	KindOf func(resource string) (schema.GroupKind, error)
}
