// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

const (
	// historyLength is how many samples are kept, historyStep the least time
	// between two of them.
	historyLength = 12
	historyStep   = 25 * time.Second
)

// history is how much of something was used, by name: five minutes of it.
type history struct {
	series map[string]*series
}

type series struct {
	last    time.Time
	samples []float64
}

// add notes a share in use, between 0 and 1, unless the last sample is too
// young.
func (h *history) add(now time.Time, name string, share float64) {
	if h.series == nil {
		h.series = map[string]*series{}
	}
	of := h.series[name]
	if of == nil {
		of = &series{}
		h.series[name] = of
	}
	if !of.last.IsZero() && now.Sub(of.last) < historyStep {
		return
	}
	of.last = now
	of.samples = append(of.samples, share)
	of.samples = of.samples[max(len(of.samples)-historyLength, 0):]
}

// line draws the newest samples, the last one on the right.
func (h *history) line(l *look.Look, name string, width int) string {
	var samples []float64
	if of := h.series[name]; of != nil {
		samples = of.samples[max(len(of.samples)-width, 0):]
	}
	var line strings.Builder
	line.WriteString(strings.Repeat(" ", width-len(samples)))
	levels := l.Glyphs.Levels
	for _, share := range samples {
		level := int(share * float64(len(levels)))
		line.WriteString(levels[min(max(level, 0), len(levels)-1)])
	}
	return line.String()
}
