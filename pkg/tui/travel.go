// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// timeActions returns the keys for a recording; none without one.
func (m *Model) timeActions() []action {
	past := m.opts.Past
	if past == nil {
		return nil
	}
	step := func(later bool) func() tea.Cmd {
		return m.travel("", func(context.Context) (*recording.Missed, error) { return past.Step(later) })
	}
	namespace := m.namespace
	toCause := func(later bool) func() tea.Cmd {
		return m.travel("looking for a cause that begins or ends; esc stops", func(ctx context.Context) (*recording.Missed, error) {
			return past.ToCause(ctx, later, namespace)
		})
	}
	k := &m.keys
	return []action{
		{k.later, keysDashboard, step(true)},
		{k.earlier, keysDashboard, step(false)},
		{k.laterCause, keysDashboard, toCause(true)},
		{k.earlierCause, keysDashboard, toCause(false)},
	}
}

// travel makes an action that goes through the recording in the background. It says what is done
// meanwhile.
func (m *Model) travel(doing string, to func(ctx context.Context) (*recording.Missed, error)) func() tea.Cmd {
	return func() tea.Cmd {
		if m.stopTravel != nil {
			return nil
		}
		ctx, stop := context.WithCancel(m.ctx)
		m.stopTravel, m.message = stop, doing
		return func() tea.Msg {
			defer stop()
			missed, err := to(ctx)
			return traveledMsg{missed, err}
		}
	}
}

// traveledMsg says that the dashboard is at another moment.
type traveledMsg struct {
	missed *recording.Missed
	err    error
}

// arrive shows the moment.
func (msg traveledMsg) arrive(h *host) tea.Cmd {
	h.stopTravel, h.message = nil, ""
	switch {
	case errors.Is(msg.err, context.Canceled):
	case msg.err != nil:
		h.message = msg.err.Error()
	case msg.missed != nil:
		h.message = fmt.Sprintf("not known from %s on: %s", msg.missed.Since.Local().Format(time.TimeOnly), msg.missed.Reason)
	}
	return h.live.Turn()
}
