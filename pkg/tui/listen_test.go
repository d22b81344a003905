// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui

import (
	"context"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// changing is a cluster that changes all the time.
type changing struct{ *moving }

func (changing) Changed() <-chan struct{} {
	changed := make(chan struct{})
	close(changed)
	return changed
}

// TestManyChanges hears of a cluster in which something always changes no more often than
// pictures are taken: the screen is drawn after each time.
func TestManyChanges(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	m := New(ctx, Options{
		Source: changing{newMoving(example(t))}, Now: testTime, Env: func(string) string { return "" },
		After: func(time.Duration, tea.Msg) tea.Cmd { return nil },
	})
	messages := make(chan tea.Msg, 100)
	start(ctx, m.Init(), messages)
	for heard := 0; ; {
		select {
		case msg := <-messages:
			if _, changed := msg.(live.ChangedMsg); changed {
				heard++
			}
			_, cmd := m.Update(msg)
			start(ctx, cmd, messages)
		case <-ctx.Done():
			if heard == 0 || heard > 5 {
				t.Errorf("it heard of %d changes in a second", heard)
			}
			return
		}
	}
}
