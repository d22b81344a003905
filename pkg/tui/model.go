// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/alarm"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/config"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/events"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/guard"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// Options are what a dashboard is made for.
type Options struct {
	Source picture.Source
	// Fixed is true if the source never changes.
	Fixed bool
	// Name says what is looked at: the address of a server, or a file. Context is how
	// the kubeconfig calls it, empty for a file.
	Name, Context string
	// Namespace is the only one whose claims and pods are shown, empty for all.
	Namespace string
	// Now is the clock, and After makes a command that brings a message later;
	// nil for the real ones.
	Now   func() time.Time
	After func(time.Duration, tea.Msg) tea.Cmd
	// Mouse is whether to begin with the mouse on, Color whether colors may be
	// used.
	Mouse, Color bool
	// Bell is whether to ring when the cluster gets worse.
	Bell bool
	// Changer makes changes of the cluster that somebody asks for and confirms; nil
	// where none may be made.
	Changer guard.Changer
	// Contexts are the other clusters to go to; nil for none. Leave ends the connection of
	// Source then; it may be nil.
	Contexts Contexts
	Leave    func()
	// connect makes the connection, where there is no Source yet.
	connect func(ctx context.Context) (Connection, error)
	// Config is how the user wants the dashboard.
	Config config.Config
	// Env looks up variables of the environment.
	Env func(string) string
}

// cluster is what is looked at, as people call it.
func (o *Options) cluster() string { return cmp.Or(o.Context, o.Name) }

// Model is the state of the dashboard.
type Model struct {
	ctx     context.Context
	opts    Options
	now     func() time.Time
	after   func(time.Duration, tea.Msg) tea.Cmd
	keys    keyMap
	help    help.Model
	look    look.Look
	catalog *views.Catalog
	width   int
	height  int

	started  time.Time
	picture  *picture.Picture
	troubles picture.Troubles
	// problem is why there is no newer picture.
	problem error
	// taking is true while a picture is taken, resting while none may be yet.
	taking, resting bool
	// work is how long the last screen took to be worked out of a picture.
	work time.Duration
	// dirty is true if the source has changed since the picture.
	dirty  bool
	frozen bool

	namespace string
	alarm     alarm.Memory
	happened  events.Log
	reasons   *picture.Reasons
	reasoning bool
	diagnosis *picture.Diagnosis
	// diagnosing is true while the checks are made, and for a while afterwards.
	diagnosing bool

	views []screen
	// first and nodes are two of the views.
	first *overviewScreen
	nodes *listScreen
	view  views.ID
	// stack has the screens that were opened one from the other, the view first.
	stack []screen

	prompt  prompt
	mouse   bool
	message string
}

// prompt is where something is typed.
type prompt struct {
	input textinput.Model
	// asking is what for; askNothing if nothing is typed.
	asking question
	// before is what to return to on escape, and row the row.
	before, row string
	// change is what a taint is asked for.
	change guard.Change
}

type question int

const (
	askNothing question = iota
	askFilter
	askNamespace
	askTaint
)

// screen is one page of the dashboard.
type screen interface {
	title() string
	resize(width, height int)
	// refresh works out what is not there yet, or not of the newest picture.
	refresh(m *Model) tea.Cmd
	// actions are what keys do on this screen, or do otherwise than elsewhere.
	actions(m *Model) []action
	// wheel scrolls by so many lines.
	wheel(m *Model, by int)
	// click is one at a place of the screen.
	click(m *Model, x, y int) tea.Cmd
	// view draws as many lines as the screen is high.
	view(m *Model) string
	// bindings are the keys that matter most here, for the line of keys.
	bindings(m *Model) []key.Binding
	// showsReasons reports whether the screen says why claims and pods wait,
	// showsFindings whether it says what doctor finds.
	showsReasons() bool
	showsFindings() bool
}

type (
	// changedMsg says that the source changed, or has trouble.
	changedMsg struct{}
	// pictureMsg has a new picture.
	pictureMsg struct {
		picture  *picture.Picture
		troubles picture.Troubles
		err      error
	}
	// restedMsg ends the pause after a picture.
	restedMsg struct{}
	// clockMsg comes every second.
	clockMsg struct{}
	// reasonMsg says that one reason more is known, and how long to wait for the next.
	reasonMsg struct {
		done  bool
		pause time.Duration
	}
	// reasonRestedMsg ends the pause after a reason.
	reasonRestedMsg struct{}
)

// top is the screen that is shown.
func (m *Model) top() screen { return m.stack[len(m.stack)-1] }

// push opens a screen on top of the one that is shown.
func (m *Model) push(s screen) tea.Cmd {
	m.stack = append(m.stack, s)
	m.resize()
	return m.refresh()
}

// refresh brings what is shown up to date.
func (m *Model) refresh() tea.Cmd {
	return tea.Batch(m.top().refresh(m), m.reason(), m.diagnose())
}

func (m *Model) resize() {
	m.help.SetWidth(m.width)
	m.prompt.input.SetWidth(max(m.width-20, 10))
	for _, s := range m.stack {
		s.resize(m.width, m.bodyHeight())
	}
}

// bodyHeight is what titles, status and help leave to the screen.
func (m *Model) bodyHeight() int { return max(m.height-4, 1) }

// listen waits for the next change, but not before a pause: each one has the screen drawn.
func (m *Model) listen(pause time.Duration) tea.Cmd {
	ctx, changed := m.ctx, m.opts.Source.Changed()
	if changed == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			return changedMsg{}
		}
	}
}

func (m *Model) tick() tea.Cmd {
	return m.after(time.Second, clockMsg{})
}

// take takes a picture unless one is being taken, it is too early for another,
// or the dashboard is frozen.
func (m *Model) take() tea.Cmd {
	if m.taking || m.resting || m.frozen || m.opts.connect != nil {
		return nil
	}
	m.taking, m.dirty = true, false
	before := m.picture
	ctx, source, reasons, evictions := m.ctx, m.opts.Source, m.reasons, m.opts.Bell
	return func() tea.Msg {
		var troubles picture.Troubles
		p, err := picture.Take(ctx, source)
		if err == nil {
			troubles = picture.FindTroubles(p, evictions)
		}
		if err == nil && before != nil {
			reasons.Follow(p, before)
		}
		return pictureMsg{p, troubles, err}
	}
}

const (
	// rest is the least time between two pictures. After an expensive one it is
	// longer: what collecting garbage takes comes on top.
	rest      = 250 * time.Millisecond
	restTimes = 20
	// reasonTimes is the same for reasons that are found again, firstTimes for those of
	// what was not explained yet.
	reasonTimes = 30
	firstTimes  = 1
)

// arrived shows a new picture.
func (m *Model) arrived(msg pictureMsg) tea.Cmd {
	m.taking = false
	if msg.err != nil {
		m.problem = msg.err
		return nil
	}
	before := m.picture
	m.picture, m.troubles, m.problem = msg.picture, msg.troubles, nil
	if before != nil {
		m.happened.Add(events.Between(before.Snap, m.picture.Snap, m.now()))
	}
	m.resting = true
	pause := max(rest, restTimes*(m.picture.Cost+m.work))
	return tea.Batch(m.ring(), m.refresh(), m.first.remember(m), m.after(pause, restedMsg{}))
}

// reason works out why a claim is pending or a pod waits, one at a time, while somebody can
// see it.
func (m *Model) reason() tea.Cmd {
	if m.reasoning || m.picture == nil || m.frozen || !m.top().showsReasons() {
		return nil
	}
	of, more := m.reasons.Next(m.picture, m.now())
	if !more {
		return nil
	}
	m.reasoning = true
	ctx, p, known, now := m.ctx, m.picture, m.reasons, m.now()
	times := time.Duration(reasonTimes)
	if known.Get(of).At.IsZero() {
		times = firstTimes
	}
	return func() tea.Msg {
		start := time.Now()
		done := known.Work(ctx, p, of, now)
		return reasonMsg{done, times * time.Since(start)}
	}
}

const (
	// diagnosisRest is the least time between two diagnoses. After an expensive one
	// it is longer, by diagnosisTimes.
	diagnosisRest  = 10 * time.Second
	diagnosisTimes = 60
)

type (
	// diagnosedMsg says that there is a newer diagnosis, after so long.
	diagnosedMsg struct {
		done bool
		took time.Duration
	}
	// diagnosisRestedMsg ends the pause after a diagnosis.
	diagnosisRestedMsg struct{}
)

// diagnose makes the checks of doctor in the background, while somebody can see what
// they find, and not before the reasons are known: these are wanted first.
func (m *Model) diagnose() tea.Cmd {
	if m.diagnosing || m.picture == nil || m.frozen || !m.top().showsFindings() || !m.diagnosis.Due(m.picture, m.opts.Fixed, m.now()) {
		return nil
	}
	m.diagnosing = true
	ctx, p, known, fixed, now := m.ctx, m.picture, m.diagnosis, m.opts.Fixed, m.now()
	return func() tea.Msg {
		start := time.Now()
		done := known.Work(ctx, p, fixed, now)
		return diagnosedMsg{done, time.Since(start)}
	}
}

// diagnosed shows what was found, and lets the next diagnosis wait.
func (m *Model) diagnosed(msg diagnosedMsg) tea.Cmd {
	if !msg.done {
		m.diagnosing = false
		return nil
	}
	return tea.Batch(m.top().refresh(m), m.after(max(diagnosisRest, diagnosisTimes*msg.took), diagnosisRestedMsg{}))
}

// line makes a text from outside fit to be a line of the screen.
func (m *Model) line(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return ansi.Truncate(render.Escape(text), m.width, m.look.Glyphs.More)
}
