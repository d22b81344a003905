// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// moving is a source that a test changes.
type moving struct {
	mu      sync.Mutex
	snap    *snapshot.Snapshot
	since   time.Time
	trouble error
	// answered is when there was an answer; zero for the time at which all tests are.
	answered time.Time
}

func newMoving(snap *snapshot.Snapshot) *moving { return &moving{snap: snap} }

func (s *moving) Snapshot() *snapshot.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snap
}

func (s *moving) Target(context.Context, snapshot.Argument) (*snapshot.Snapshot, error) {
	return s.Snapshot(), nil
}

func (s *moving) Problems(context.Context) (*snapshot.Snapshot, error) { return s.Snapshot(), nil }

// Changed returns nil, since the tests tell the dashboard of changes: see
// [session.changed].
func (*moving) Changed() <-chan struct{} { return nil }

func (s *moving) Trouble() (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.trouble
}

func (s *moving) Answered() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered.IsZero() {
		return testTime()
	}
	return s.answered
}

// testTime returns the time at which tests take place.
func testTime() time.Time { return time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC) }

// set changes the cluster.
func (s *moving) set(snap *snapshot.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snap = snap
}

// fail sets the error of the connection.
func (s *moving) fail(since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.trouble = since, err
}

// session is a dashboard that a test works with: commands are run at once, and
// time stands still.
type session struct {
	t     *testing.T
	model *Model
	// app is nil where there are no other clusters to go to.
	app *app
	// later are the messages that wait for their time.
	later []tea.Msg
	quit  bool
	// rung counts the bells.
	rung int
}

func newSession(t *testing.T, opts Options, width, height int) *session {
	t.Helper()
	s := &session{t: t}
	if opts.Env == nil {
		opts.Env = func(string) string { return "" }
	}
	if opts.Name == "" {
		opts.Name = "test cluster"
	}
	if opts.Now == nil {
		opts.Now = testTime
	}
	opts.After = func(_ time.Duration, msg tea.Msg) tea.Cmd {
		return func() tea.Msg { return laterMsg{msg} }
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if opts.Contexts != nil {
		s.app = newApp(ctx, opts)
		s.model = s.app.shown
	} else {
		s.model = New(ctx, opts)
	}
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	if s.app != nil {
		s.run(s.app.Init())
	} else {
		s.run(s.model.Init())
	}
	s.rest()
	return s
}

// laterMsg is a message that has to wait.
type laterMsg struct{ tea.Msg }

// send gives a message to the dashboard and does what it asks for.
func (s *session) send(msg tea.Msg) {
	if s.app != nil {
		_, cmd := s.app.Update(msg)
		s.model = s.app.shown
		s.run(cmd)
		return
	}
	_, cmd := s.model.Update(msg)
	s.run(cmd)
}

func (s *session) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	msg := cmd()
	if of, ok := msg.(turnMsg); ok {
		if later, ok := of.msg.(laterMsg); ok {
			// It comes in its time, from the same dashboard.
			msg = laterMsg{turnMsg{of.turn, later.Msg}}
		}
	}
	switch msg := msg.(type) {
	case nil:
	case tea.BatchMsg:
		for _, one := range msg {
			s.run(one)
		}
	case laterMsg:
		s.later = append(s.later, msg.Msg)
	case tea.QuitMsg:
		s.quit = true
	default:
		if isBell(msg) {
			s.rung++
		}
		s.send(msg)
	}
}

// rest lets pauses pass, until nothing is left to be worked out.
func (s *session) rest() {
	for len(s.later) > 0 {
		waiting := s.later
		s.later = nil
		for _, msg := range waiting {
			of, _ := msg.(turnMsg)
			_, clock := msg.(live.ClockMsg)
			if _, tick := of.msg.(live.ClockMsg); !clock && !tick {
				s.send(msg)
			}
		}
	}
}

// keys presses keys, named as Bubble Tea names them; what begins with a quotation
// mark is typed.
func (s *session) keys(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, `"`); ok {
			for _, r := range text {
				s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			continue
		}
		special := map[string]rune{
			"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab,
			"left": tea.KeyLeft, "right": tea.KeyRight, "pgdown": tea.KeyPgDown, "end": tea.KeyEnd, "home": tea.KeyHome,
			"backspace": tea.KeyBackspace,
		}
		switch code, ok := special[name]; {
		case ok:
			s.send(tea.KeyPressMsg{Code: code})
		case name == "space":
			s.send(tea.KeyPressMsg{Code: tea.KeySpace, Text: " "})
		default:
			s.send(tea.KeyPressMsg{Code: []rune(name)[0], Text: name})
		}
	}
	s.rest()
}

// changed tells the dashboard that its source changed.
func (s *session) changed() {
	s.send(live.ChangedMsg{})
	s.rest()
}

// screen returns the content of the terminal, without colors.
func (s *session) screen() string { return ansi.Strip(s.model.View().Content) }

// lines returns the lines of the screen, without blanks at the end.
func (s *session) lines() []string {
	lines := strings.Split(s.screen(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// shows fails unless the screen has a text.
func (s *session) shows(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.screen(), text) {
			s.t.Fatalf("the screen has no %q:\n%s", text, s.screen())
		}
	}
}

// lacks fails if the screen has a text.
func (s *session) lacks(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(s.screen(), text) {
			s.t.Fatalf("the screen has %q:\n%s", text, s.screen())
		}
	}
}

// selected returns the line with the cursor.
func (s *session) selected() string {
	s.t.Helper()
	for _, line := range s.lines() {
		// On the overview, another section may stand before it.
		if _, row, framed := strings.Cut(line, s.model.look.Glyphs.Between+s.model.look.Glyphs.Cursor); framed {
			return row
		}
		if strings.HasPrefix(line, s.model.look.Glyphs.Cursor) {
			return line
		}
	}
	s.t.Fatalf("no line is selected:\n%s", s.screen())
	return ""
}

// example returns the cluster that comes with the project.
func example(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	snap, err := files.Load(t.Context(), []string{filepath.Join("..", "..", "examples", "cluster")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func browse(t *testing.T, width, height int) *session {
	t.Helper()
	return newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Name: "file examples/cluster"}, width, height)
}

// once writes the overview of a snapshot.
func once(t *testing.T, opts Options, snap *snapshot.Snapshot, width int, w io.Writer) error {
	t.Helper()
	if opts.Env == nil {
		opts.Env = func(string) string { return "" }
	}
	_, err := Once(t.Context(), opts, snap, width, w)
	return err
}
