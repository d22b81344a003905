// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// UsageHours adds up usage over time.
type UsageHours struct {
	of   map[string]*api.UsageHours
	last []api.Usage
	at   time.Time
	// Known is how long it was known how the cluster was.
	Known time.Duration
}

// Add goes on to a time, with the usage from then on. If it was missed how the cluster was until
// then, the time since the last call does not count.
func (h *UsageHours) Add(at time.Time, missed bool, list []api.Usage) {
	if h.of == nil {
		h.of = map[string]*api.UsageHours{}
	}
	passed := max(at.Sub(h.at), 0)
	if missed || h.at.IsZero() {
		passed = 0
	}
	hours := passed.Hours()
	h.Known += passed
	for i := range h.last {
		u := &h.last[i]
		if h.of[u.Name] == nil {
			h.of[u.Name] = &api.UsageHours{}
		}
		sum := h.of[u.Name]
		sum.Devices += hours * float64(u.Used)
		sum.Idle += hours * float64(u.Idle)
		sum.Waiting += hours * float64(u.Waiting)
	}
	h.last = list
	if at.After(h.at) {
		h.at = at
	}
}

// Usage returns the last usage with all hours, and the groups that use nothing any more. The largest
// use of all that time is first.
func (h *UsageHours) Usage(by string) []api.Usage {
	list := slices.Clone(h.last)
	for i := range list {
		list[i].Hours = &api.UsageHours{}
		if sum := h.of[list[i].Name]; sum != nil {
			list[i].Hours = sum
		}
	}
	for name, sum := range h.of {
		if !slices.ContainsFunc(h.last, func(u api.Usage) bool { return u.Name == name }) {
			list = append(list, api.Usage{TypeMeta: typeMeta("Usage"), By: by, Name: name, Classes: []api.TeamClass{}, Hours: sum})
		}
	}
	slices.SortFunc(list, func(a, b api.Usage) int {
		return cmp.Or(cmp.Compare(b.Hours.Devices, a.Hours.Devices), cmp.Compare(b.Hours.Waiting, a.Hours.Waiting), cmp.Compare(a.Name, b.Name))
	})
	return list
}
