// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestPageSaysItsTime says of when a text is as soon as the cluster is another one.
func TestPageSaysItsTime(t *testing.T) {
	before := *example(t)
	source := newMoving(&before)
	s := newSession(t, Options{Source: source}, 120, 40)
	s.keys("6", "w")
	s.shows("why Pod research/pretrain-0", "r look again")
	s.lacks("as of")
	later := before
	later.TakenAt = before.TakenAt.Add(time.Minute)
	source.set(&later)
	s.changed()
	s.lacks("as of")
	after := later
	after.Nodes = slices.DeleteFunc(slices.Clone(before.Nodes), func(n *corev1.Node) bool { return n.Name == "gpu-03" })
	source.set(&after)
	s.changed()
	s.shows("; as of 09:30:00, r looks again")
	s.keys("r")
	s.lacks("as of")
}

// TestLegendBesideCounts shows what the signs of nodes mean, and how many rows there are.
func TestLegendBesideCounts(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("2")
	s.shows("1/12 rows, ", "░ free █ used ▓ shared ▚ used+tainted ▒ blocked ! tainted ? unusable ✗ unhealthy")
	s.keys("/", `"gpu-0`, "enter")
	s.shows("filter gpu-0   1/9 of 12 rows", "unhealthy")
}
