// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
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

// Reader reads the cluster or the files of the flags.
type Reader struct {
	Config *genericclioptions.ConfigFlags
	paths  []string
	// at is the time of a recording, empty for its end.
	at       string
	previews []string
	Options  files.Options
	// SaysSource is true for verbs whose answer names the recording and the time.
	SaysSource bool
	// preview holds the previews once they were read.
	preview *snapshot.Snapshot
	// Namespace is the namespace of -n, empty if there was none.
	Namespace string
	// Only is the namespace of the answer, for verbs that otherwise look at all namespaces:
	// Namespace, empty with -A.
	Only string
	// namespace is the namespace of -n, empty with -A.
	namespace string
	streams   genericiooptions.IOStreams
}

// Live reports whether a cluster is read and not a file.
func (r *Reader) Live() bool { return len(r.paths) == 0 }
