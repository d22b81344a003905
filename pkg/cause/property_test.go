// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// TestProperties holds the causes of random clusters and of a fleet to their promises: each pod
// that waits fits now or has a cause, and with the edits of a cause made, the pods fit that it
// promises.
func TestProperties(t *testing.T) {
	snaps := []*snapshot.Snapshot{fleet.Mixed(40)}
	fleet.AddWaiting(snaps[0], 60)
	seeds := uint64(150)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		snaps = append(snaps, fleet.Random(seed).Snapshot)
	}
	promised := 0
	for i, snap := range snaps {
		c := cluster.New(snap)
		f, err := find(t.Context(), c, Options{})
		if err != nil {
			t.Fatalf("cluster %d: %v", i, err)
		}
		for _, s := range f.stuck {
			if len(s.causes) == 0 && !s.starts() {
				t.Errorf("cluster %d: %s has no cause: %+v", i, s.ref, explain.Reason(s.answer, s.err))
			}
		}
		found, err := Find(t.Context(), c, Options{})
		if err != nil {
			t.Fatalf("cluster %d: %v", i, err)
		}
		status, ids := found.Status, map[string]bool{}
		for j := range status.Causes {
			cause := &status.Causes[j]
			if cause.ID == "" || ids[cause.ID] || cause.Message == "" || cause.Severity == "" {
				t.Errorf("cluster %d: %+v", i, cause)
			}
			ids[cause.ID] = true
			if cause.Mended != nil && len(cause.Mended.Edits) > 0 {
				promised++
				checkMended(t, i, c, status, cause)
			}
		}
	}
	if promised < len(snaps)/10 {
		t.Errorf("%d promises of %d clusters", promised, len(snaps))
	}
}

// checkMended makes the edits of a cause, and compares the pods that fit then.
func checkMended(t *testing.T, i int, c *cluster.Cluster, before *api.Status, cause *api.Cause) {
	t.Helper()
	snap, err := whatif.Amend(c.Snapshot, cause.Mended.Edits)
	if err != nil {
		t.Errorf("cluster %d: %v", i, err)
		return
	}
	after, err := Find(t.Context(), cluster.New(snap), Options{})
	if err != nil {
		t.Fatal(err)
	}
	gained := after.Status.Pods.Starting - before.Pods.Starting
	if cause.Mended.Waiting > 0 && gained != cause.Mended.Starts-cause.Mended.Stops {
		t.Errorf("cluster %d: %s: %d more pods fit, promised %+v", i, cause.Message, gained, cause.Mended)
	}
	if cause.Mended.Waiting == 0 && cause.Pods == 1 {
		for j := range after.Status.Causes {
			if after.Status.Causes[j].ID == cause.ID {
				t.Errorf("cluster %d: it is mended and still there: %+v", i, after.Status.Causes[j])
			}
		}
	}
}
