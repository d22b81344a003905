// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestUsageHours adds up a known history. Missed time does not count, and groups that stopped stay.
func TestUsageHours(t *testing.T) {
	start := time.Date(2026, 9, 1, 9, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	var h UsageHours
	h.Add(at(0), false, []api.Usage{{Name: "a", Used: 8, Idle: 2}, {Name: "b", Waiting: 1}})
	h.Add(at(30), false, []api.Usage{{Name: "a", Used: 8}, {Name: "b", Used: 4}})
	h.Add(at(60), false, []api.Usage{{Name: "a", Used: 4}})
	h.Add(at(120), true, []api.Usage{{Name: "a", Used: 4}, {Name: "c", Waiting: 2}})
	h.Add(at(135), false, []api.Usage{{Name: "a", Used: 4}, {Name: "c", Waiting: 2}})
	var got []string
	for _, u := range h.Usage("namespace") {
		got = append(got, fmt.Sprintf("%s %d: %g %g %g", u.Name, u.Used, u.Hours.Devices, u.Hours.Idle, u.Hours.Waiting))
	}
	if want := "a 4: 9 1 0\nb 0: 2 0 0.5\nc 0: 0 0 0.5"; strings.Join(got, "\n") != want {
		t.Errorf("want:\n%s\ngot:\n%s", want, strings.Join(got, "\n"))
	}
}
