// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestBehaves looks at the edges of the table. What the behaviors mean for a pod is
// tested by pkg/explain and, on real releases, by `make test-releases`.
func TestBehaves(t *testing.T) {
	tests := map[string]struct {
		version, emulator string
		behavior          cluster.Behavior
		want              bool
	}{
		"before the fix":                                 {version: "v1.36.1", behavior: cluster.MixedClaimsFailScore, want: true},
		"with the fix":                                   {version: "v1.36.2", behavior: cluster.MixedClaimsFailScore},
		"with the fix of another branch":                 {version: "v1.35.6", behavior: cluster.MixedClaimsFailScore},
		"not supported: as the last patch of the oldest": {version: "v1.34.0", behavior: cluster.MixedClaimsFailScore},
		"not supported: as what the oldest does":         {version: "v1.33.9", behavior: cluster.UnsortedPools, want: true},
		"of a vendor":                                    {version: "v1.36.1-gke.100", behavior: cluster.AllWithCountersPanics, want: true},
		"since a release":                                {version: "v1.36.0", behavior: cluster.TimeoutEndsAttempt, want: true},
		"without the fix in any patch":                   {version: "v1.37.2", behavior: cluster.AllPoolErrorEndsAttempt, want: true},
		"newer than the library":                         {version: "v1.38.0", behavior: cluster.AllPoolErrorEndsAttempt},
		"not known: that of the library":                 {behavior: cluster.TimeoutEndsAttempt, want: true},
		"an old API, emulated by new code":               {version: "v1.35.0", emulator: "v1.37.1", behavior: cluster.UnsortedPools},
		"an old API and its own code":                    {version: "v1.35.0", behavior: cluster.UnsortedPools, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster()
			snap.ServerVersion, snap.Emulator = test.version, test.emulator
			if got := cluster.New(snap).Behaves(test.behavior); got != test.want {
				t.Errorf("%s in %s: %v, want %v", test.behavior, snap.BinaryVersion(), got, test.want)
			}
		})
	}
}
