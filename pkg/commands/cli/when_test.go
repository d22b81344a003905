// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("test", 2*60*60)
	end := time.Date(2026, 9, 2, 10, 30, 0, 0, zone)
	for text, want := range map[string]string{
		"2026-09-01T09:14:00Z":      "2026-09-01T09:14:00Z",
		"2026-09-01T09:14:00+02:00": "2026-09-01T07:14:00Z",
		"09:14":                     "2026-09-02T07:14:00Z",
		"09:14:30":                  "2026-09-02T07:14:30Z",
		"10:30":                     "2026-09-02T08:30:00Z",
		"23:00":                     "2026-09-01T21:00:00Z",
		"-2h":                       "2026-09-02T06:30:00Z",
		"90m":                       "2026-09-02T07:00:00Z",
		"0s":                        "2026-09-02T08:30:00Z",
	} {
		got, err := ParseTime(text, end)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s: want %s, got %v, %v", text, want, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "25:00", "--2h", "2026-09-01", "2"} {
		if got, err := ParseTime(text, end); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
