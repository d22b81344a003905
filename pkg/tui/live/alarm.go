// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"maps"
	"time"
)

// Forget is how long a trouble has to be over before it counts as a new one when it
// comes again: what comes and goes is one trouble.
const Forget = 10 * time.Minute

// AlarmMemory knows the troubles that there were. The zero value has seen nothing.
type AlarmMemory struct {
	// seen is when there was a trouble last; nil before the first look.
	seen map[string]time.Time
}

// Worse takes in all troubles that there are now, each by a name of its own, and reports
// whether one of them is new. At the first look none is: that is how things are.
func (m *AlarmMemory) Worse(now time.Time, troubles []string) bool {
	first := m.seen == nil
	if first {
		m.seen = map[string]time.Time{}
	}
	maps.DeleteFunc(m.seen, func(_ string, at time.Time) bool { return now.Sub(at) >= Forget })
	worse := false
	for _, trouble := range troubles {
		if _, known := m.seen[trouble]; !known && !first {
			worse = true
		}
		m.seen[trouble] = now
	}
	return worse
}
