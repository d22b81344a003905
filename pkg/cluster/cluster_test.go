// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// newCluster makes sure that nobody changes the snapshot during the test.
func newCluster(t testing.TB, snap *snapshot.Snapshot) *Cluster {
	t.Helper()
	tc.Unchanged(t, snap)
	return New(snap)
}
