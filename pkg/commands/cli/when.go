// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"time"
)

// timeForms says how to write a time.
const timeForms = "Write a time of day such as 09:14 or 09:14:30, a time such as 2026-07-01T09:14:00Z, or how long before the end, such as 2h or 90s."

// ParseTime parses a time at or before end: RFC 3339, a time of day in the zone, which is the last
// such one before the end, or a duration before the end, with or without a minus.
func ParseTime(text string, end time.Time, zone *time.Location) (time.Time, error) {
	if before, err := time.ParseDuration(strings.TrimPrefix(text, "-")); err == nil {
		if before < 0 {
			return time.Time{}, Usagef(timeForms, "parse the time %q: more than one minus", text)
		}
		return end.Add(-before), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.After(end) {
			return time.Time{}, Usagef(timeForms, "parse the time %q: it is after the end, %s", text, end.In(zone).Format(time.RFC3339))
		}
		return at, nil
	}
	for _, form := range []string{"15:04", "15:04:05"} {
		at, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		day := end.In(zone)
		for {
			found := time.Date(day.Year(), day.Month(), day.Day(), at.Hour(), at.Minute(), at.Second(), 0, zone)
			if !found.After(end) {
				return found, nil
			}
			day = day.AddDate(0, 0, -1)
		}
	}
	return time.Time{}, Usagef(timeForms, "parse the time %q: it is neither a time nor a duration", text)
}
