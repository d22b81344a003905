// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Moment is the state of a cluster at one point in time, [snapshot.Snapshot.TakenAt]. The
// snapshots of a recording share the objects that did not change.
type Moment struct {
	Snapshot *snapshot.Snapshot
	// Missed is the time before this moment in which the cluster was not watched; nil if it was
	// watched since the previous moment.
	Missed *Missed
	// After is the missed time that somebody asked for, after this moment; nil if the time is
	// known.
	After *Missed
}

// Missed is a time in which the cluster was not followed.
type Missed struct {
	// Since is when it was last known how the cluster is.
	Since time.Time `json:"since"`
	// Reason is one sentence for people.
	Reason string `json:"reason"`
}
