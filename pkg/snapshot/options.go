// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "io"

// Options are what both ways into a [Snapshot] have in common.
type Options struct {
	// Gates has the feature gates given by the user. They beat everything that
	// the cluster or a file tells and get the source [GateFromFlag].
	Gates map[string]bool
	// KubernetesVersion is the version given by the user. It beats what the
	// cluster or a file tells. Empty means: not given.
	KubernetesVersion string
	// Stdin is what the path "-" reads. Nil is an empty input.
	Stdin io.Reader
	// StdinName is what errors call Stdin; empty for "standard input".
	StdinName string
}
