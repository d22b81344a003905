// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("two hours east", 2*60*60)
	// 09:30 of the second of July in the zone.
	end := time.Date(2026, 7, 2, 7, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2h":                        "2026-07-02T07:30:00+02:00",
		"-2h":                       "2026-07-02T07:30:00+02:00",
		"1h30m":                     "2026-07-02T08:00:00+02:00",
		"0s":                        "2026-07-02T09:30:00+02:00",
		"09:14":                     "2026-07-02T09:14:00+02:00",
		"09:14:30":                  "2026-07-02T09:14:30+02:00",
		"09:30":                     "2026-07-02T09:30:00+02:00",
		"09:30:01":                  "2026-07-01T09:30:01+02:00",
		"23:00":                     "2026-07-01T23:00:00+02:00",
		"00:00":                     "2026-07-02T00:00:00+02:00",
		"2026-07-01T09:14:00Z":      "2026-07-01T11:14:00+02:00",
		"2026-07-02T09:30:00+02:00": "2026-07-02T09:30:00+02:00",
	} {
		got, err := ParseTime(text, end, zone)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := got.In(zone).Format(time.RFC3339); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"":                     "neither a time nor a duration",
		"yesterday":            "neither a time nor a duration",
		"25:00":                "neither a time nor a duration",
		"09:14:30:00":          "neither a time nor a duration",
		"--2h":                 "more than one minus",
		"2026-07-02T07:30:01Z": "after the end, 2026-07-02T09:30:00+02:00",
		"2026-07-02":           "neither a time nor a duration",
	} {
		got, err := ParseTime(text, end, zone)
		if err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		} else if !strings.Contains(err.Error(), want) || ExitCode(err) != ExitUsage {
			t.Errorf("%q: %v (exit code %d), want %q", text, err, ExitCode(err), want)
		}
	}
}
