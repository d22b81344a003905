// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"
	"time"
)

// TestWorse rings for new troubles, and never twice for the same.
func TestWorse(t *testing.T) {
	start := time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC)
	var m AlarmMemory
	for _, step := range []struct {
		after    time.Duration
		troubles []string
		worse    bool
		why      string
	}{
		{0, []string{"pool a"}, false, "what is there at the first look is not new"},
		{time.Second, []string{"pool a"}, false, "nothing changed"},
		{2 * time.Second, []string{"pool a", "pod b"}, true, "a pod is new"},
		{3 * time.Second, []string{"pool a", "pod b"}, false, "it was rung for it"},
		{4 * time.Second, []string{"pod b"}, false, "that a pool works again is not worse"},
		{5 * time.Second, []string{"pool a", "pod b"}, false, "a pool that comes and goes is one trouble"},
		{6 * time.Second, nil, false, "all is well"},
		{7 * time.Second, []string{"pod c", "pod d"}, true, "two are new, as many as before"},
		{5*time.Second + Forget, []string{"pool a", "pod c"}, true, "a pool that worked for long is broken again"},
		{6*time.Second + Forget, []string{"pool a", "pod c"}, false, "it was rung for it"},
	} {
		if got := m.Worse(start.Add(step.after), step.troubles); got != step.worse {
			t.Errorf("after %s: worse is %t although %s", step.after, got, step.why)
		}
	}
	m = AlarmMemory{}
	if m.Worse(start, nil) || !m.Worse(start, []string{"pod"}) {
		t.Error("the first trouble of a cluster without any is not heard")
	}
}
