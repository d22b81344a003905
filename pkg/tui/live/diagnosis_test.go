// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"
	"time"
)

// TestDue makes the checks again after a change, and where nothing changes after a while:
// the more rarely, the longer they take.
func TestDue(t *testing.T) {
	at := time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC)
	for _, tc := range []struct {
		name        string
		took, later time.Duration
		change      int
		fixed, want bool
	}{
		{"a moment ago", 10 * time.Millisecond, 59 * time.Second, 1, false, false},
		{"old", 10 * time.Millisecond, time.Minute, 1, false, true},
		{"a file", 10 * time.Millisecond, time.Hour, 1, true, false},
		{"old and expensive", 2 * time.Second, 5 * time.Minute, 1, false, false},
		{"very old and expensive", 2 * time.Second, 800 * time.Second, 1, false, true},
		{"changed", 2 * time.Second, time.Second, 2, false, true},
	} {
		d := &Diagnosis{times: 1, of: 1, at: at, took: tc.took}
		if got := d.Due(&Picture{change: tc.change}, tc.fixed, at.Add(tc.later)); got != tc.want {
			t.Errorf("%s: due is %t", tc.name, got)
		}
	}
}
