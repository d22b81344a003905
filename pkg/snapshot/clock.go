// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Clock is when a snapshot was taken, and how texts about it tell times.
type Clock struct {
	// TakenAt is when the cluster was asked. Zero if a file does not tell.
	// Ages are counted up to this moment, so that a file reads the same
	// tomorrow; see [Clock.Now].
	TakenAt time.Time
	// AbsoluteTimes is true if texts about the cluster have points in time in place of ages,
	// because they are read later.
	AbsoluteTimes bool
}

// Now returns the moment up to which ages are counted: when the snapshot was taken, or the
// present if that is unknown.
func (c *Clock) Now() time.Time {
	if c.TakenAt.IsZero() {
		return time.Now()
	}
	return c.TakenAt
}

// Lasting returns how long something has lasted, after a preposition ("for 5m"), or since when
// with [Clock.AbsoluteTimes].
func (c *Clock) Lasting(preposition string, since time.Time) string {
	if c.AbsoluteTimes {
		return "since " + absolute(since)
	}
	return preposition + " " + c.age(since)
}

// Ago returns when something happened: "5m ago", or the point in time with
// [Clock.AbsoluteTimes].
func (c *Clock) Ago(at time.Time) string {
	if c.AbsoluteTimes {
		return "at " + absolute(at)
	}
	return c.age(at) + " ago"
}

// age returns the time since then, in kubectl's format.
func (c *Clock) age(since time.Time) string {
	return duration.HumanDuration(max(0, c.Now().Sub(since)))
}

func absolute(t time.Time) string { return t.UTC().Format(time.RFC3339) }
