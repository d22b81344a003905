// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Source is a cluster that is looked at. [collect.Watcher] is one.
type Source interface {
	// Snapshot is the cluster as it is now.
	Snapshot() *snapshot.Snapshot
	// Target is the cluster with what else is known about one object: events,
	// and what holds a pod back. It may ask a server, unlike Snapshot.
	Target(ctx context.Context, target snapshot.Argument) (*snapshot.Snapshot, error)
	// Problems is the cluster with what else there is to know about pods that do not run: events,
	// and what holds them back. It may ask a server, too.
	Problems(ctx context.Context) (*snapshot.Snapshot, error)
	// Changed gets a value after something changed.
	Changed() <-chan struct{}
	// Trouble returns the error that keeps the source from knowing more, and since when;
	// nil if there is none.
	Trouble() (since time.Time, err error)
	// Answered returns when the source last heard of the cluster; zero for a source that
	// never changes.
	Answered() time.Time
}

// Fixed is a source that never changes, such as a file.
type Fixed struct{ snap *snapshot.Snapshot }

// NewFixed makes a source of one snapshot.
func NewFixed(snap *snapshot.Snapshot) Fixed { return Fixed{snap} }

// Snapshot always returns the same snapshot.
func (f Fixed) Snapshot() *snapshot.Snapshot { return f.snap }

// Target always returns the same snapshot: a file has everything.
func (f Fixed) Target(context.Context, snapshot.Argument) (*snapshot.Snapshot, error) {
	return f.snap, nil
}

// Problems always returns the same snapshot.
func (f Fixed) Problems(context.Context) (*snapshot.Snapshot, error) { return f.snap, nil }

// Changed never gets anything.
func (Fixed) Changed() <-chan struct{} { return nil }

// Trouble returns no error.
func (Fixed) Trouble() (time.Time, error) { return time.Time{}, nil }

// Answered returns zero: nobody was asked.
func (Fixed) Answered() time.Time { return time.Time{} }
