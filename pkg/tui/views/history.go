// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// HistoryStep is the time between two samples.
const HistoryStep = time.Minute

// historyLength is how many minutes are kept.
const historyLength = 60

// History is how much of something there was, by name: an hour of it. What it was
// last holds until the next sample: one is added with every change.
type History struct {
	series map[string][]sample
}

type sample struct {
	at    time.Time
	value float64
}

// Remember notes how much is used of everything, and how many pods wait.
func (h *History) Remember(now time.Time, o *inventory.Overview, waiting int) {
	for i := range o.Capacity {
		h.add(now, seriesOf(&o.Capacity[i]), ptr.Deref(o.Capacity[i].Share, 0))
	}
	h.add(now, "waiting", float64(waiting))
}

// seriesOf returns the name of the history of a class or a driver.
func seriesOf(c *api.ClassCapacity) string {
	if c.Class == "" {
		return "driver " + c.Driver
	}
	return "class " + c.Class
}

// add notes a value. Of each minute, the last one is kept.
func (h *History) add(now time.Time, name string, value float64) {
	if h.series == nil {
		h.series = map[string][]sample{}
	}
	of := h.series[name]
	if last := len(of) - 1; last >= 0 && of[last].at.Truncate(HistoryStep).Equal(now.Truncate(HistoryStep)) {
		of[last] = sample{now, value}
		return
	}
	of = append(of, sample{now, value})
	h.series[name] = of[max(len(of)-historyLength-1, 0):]
}

// Hours returns the last hour of everything, by name.
func (h *History) Hours(now time.Time) map[string][]float64 {
	hours := map[string][]float64{}
	for name := range h.series {
		hours[name] = h.hour(now, name)
	}
	return hours
}

// hour returns the value at each minute of the last hour, the newest last; negative before
// the first sample. It is nil without any.
func (h *History) hour(now time.Time, name string) []float64 {
	of := h.series[name]
	if len(of) == 0 {
		return nil
	}
	values := make([]float64, historyLength)
	for i := range values {
		until := now.Add(-time.Duration(historyLength-1-i) * HistoryStep)
		next, _ := slices.BinarySearchFunc(of, until, func(s sample, at time.Time) int {
			if s.at.After(at) {
				return 1
			}
			return -1
		})
		values[i] = -1
		if next > 0 {
			values[i] = of[next-1].value
		}
	}
	return values
}

// scaled brings values to at most 1.
func scaled(values []float64) []float64 {
	if len(values) == 0 {
		return nil
	}
	most := slices.Max(values)
	if most <= 0 {
		return nil
	}
	for i := range values {
		if values[i] > 0 {
			values[i] /= most
		}
	}
	return values
}
