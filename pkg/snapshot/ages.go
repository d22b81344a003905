// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Lasting returns how long something has lasted, after a preposition ("for 5m"), or since when
// with [Snapshot.AbsoluteTimes].
func (s *Snapshot) Lasting(preposition string, since time.Time) string {
	if s.AbsoluteTimes {
		return "since " + absolute(since)
	}
	return preposition + " " + s.age(since)
}

// Ago returns when something happened: "5m ago", or the point in time with
// [Snapshot.AbsoluteTimes].
func (s *Snapshot) Ago(at time.Time) string {
	if s.AbsoluteTimes {
		return "at " + absolute(at)
	}
	return s.age(at) + " ago"
}

// age returns the time since then, in kubectl's format.
func (s *Snapshot) age(since time.Time) string {
	return duration.HumanDuration(max(0, s.Now().Sub(since)))
}

func absolute(t time.Time) string { return t.UTC().Format(time.RFC3339) }
