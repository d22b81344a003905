// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"time"
)

// ParseTime reads a time that somebody wrote: in the format of RFC 3339, as a time of day, or as a
// duration before the end. A time of day is the last one up to the end, in the zone of the end.
func ParseTime(text string, end time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		day := time.Date(end.Year(), end.Month(), end.Day(), t.Hour(), t.Minute(), t.Second(), 0, end.Location())
		if day.After(end) {
			day = day.AddDate(0, 0, -1)
		}
		return day, nil
	}
	if before, err := time.ParseDuration(strings.TrimPrefix(text, "-")); err == nil && before >= 0 {
		return end.Add(-before), nil
	}
	return time.Time{}, Usagef("Write 2026-09-01T09:14:00Z, a time of day such as 09:14, or a duration before the end such as -2h.", "read the time %q: expected a time or a duration", text)
}
