// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// clusters are contexts: "small" has no devices, "away" cannot be reached, "first" is the
// example.
type clusters struct {
	first live.Source
	// open counts the connections that were not ended.
	open map[string]context.Context
}

func (c *clusters) Names() ([]string, error) { return []string{"away", "first", "small"}, nil }

func (c *clusters) Connect(ctx context.Context, name string) (Connection, error) {
	c.open[name] = ctx
	switch name {
	case "away":
		return Connection{}, errors.New("read from API server https://10.0.0.9: dial tcp 10.0.0.9:443: connect: connection refused")
	case "small":
		return Connection{Source: newMoving(&snapshot.Snapshot{Clock: snapshot.Clock{TakenAt: testTime()}}), Name: "https://10.0.0.2"}, nil
	default:
		return Connection{Source: c.first, Name: "https://10.0.0.1"}, nil
	}
}

// TestContexts goes to another cluster, to an unreachable one, and back.
func TestContexts(t *testing.T) {
	c := &clusters{first: newMoving(example(t)), open: map[string]context.Context{}}
	left := 0
	s := newSession(t, Options{Source: c.first, Name: "https://10.0.0.1", Context: "first", Contexts: c, Leave: func() { left++ }}, 120, 30)
	first := s.model
	s.keys("4", ":", `"ctx`, "enter")
	s.shows("context", "now  first", "small", "away")
	s.keys(`"small`, "enter")
	s.shows("https://10.0.0.2", "[1 overview]", "no DeviceClasses")
	s.lacks("gpu.example.com")
	if left != 1 || first.ctx.Err() == nil {
		t.Errorf("the first connection was ended %d times, %v", left, first.ctx.Err())
	}
	if title := s.model.View().WindowTitle; title != "dra top small" {
		t.Errorf("title %q", title)
	}
	// What was worked out for the first cluster comes too late.
	s.send(turnMsg{0, live.New(t.Context(), live.Options{Source: c.first, Now: testTime}).Take()()})
	s.lacks("gpu.example.com")

	s.keys(":", `"ctx`, "enter", `"away`, "enter")
	if c.open["small"].Err() == nil {
		t.Error("the connection to small goes on")
	}
	s.shows("context away: read from API server https://10.0.0.9", "connection refused", ": contexts goes to another context", "\n: go to a view  ? keys  q quit")
	if strings.Count(s.screen(), "connection refused") != 1 {
		t.Errorf("it says twice why:\n%s", s.screen())
	}
	s.lacks("no DeviceClasses")
	s.keys("2", "x", "w", "/", "esc", ":", `"ctx`, "enter", `"first`, "enter")
	s.shows("https://10.0.0.1", "gpu.example.com", "Waiting 10")
	if left != 1 {
		t.Errorf("the first connection was ended %d times", left)
	}
	s.keys("q")
	if !s.quit {
		t.Error("q does not end it")
	}
}

// TestContextIsLoading draws nothing as known before the connection is there.
func TestContextIsLoading(t *testing.T) {
	c := &clusters{first: newMoving(example(t)), open: map[string]context.Context{}}
	s := newSession(t, Options{Source: c.first, Context: "first", Contexts: c}, 120, 30)
	// The command that connects is not run.
	s.app.open("small")
	s.model = s.app.shown
	for _, key := range []string{"1", "2", "4", "6", "8"} {
		s.model.Update(keyPress(key))
		s.shows("reading small")
		if top := s.lines()[:4]; !strings.Contains(strings.Join(top, "\n"), "One moment…") {
			t.Errorf("not where rows will be that they are not there yet:\n%s", s.screen())
		}
		s.lacks("no DeviceClasses", "none", "0 devices", "0 taints")
	}
}

// TestNoContexts leaves contexts out where there are none, as for a file.
func TestNoContexts(t *testing.T) {
	s := browse(t, 100, 30)
	s.keys(":")
	s.shows("teams")
	s.lacks(contextsName)
}

func keyPress(name string) tea.KeyPressMsg {
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}
