// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Devices evaluates expressions for devices. Its methods are called one at a time, outside
// of Update.
type Devices interface {
	// Count evaluates an expression that is being typed.
	Count(ctx context.Context, expression string) (api.EvaluationOutcomes, *api.ExpressionProblem, error)
	// Evaluate answers about an expression that was entered.
	Evaluate(ctx context.Context, expression string) (*api.Evaluation, error)
	Len() int
}

// Words complete expressions, at once.
type Words interface {
	Complete(before string) (start int, words []string)
}

// Options configure a prompt.
type Options struct {
	Devices Devices
	Words   Words
	// Report writes the answer about an expression that was entered, as wide as the
	// terminal.
	Report func(e *api.Evaluation, width int) string
	// About says in a few words which devices there are.
	About string
	Color bool
	// Saved has earlier input.
	Saved Saved
}

// Model is the state of the prompt.
type Model struct {
	opts  Options
	input textinput.Model
	width int
	// ctx is the context of the program.
	ctx context.Context //nolint:containedctx // a model cannot be given one
	// running is the work in progress, nil if there is none; cancel ends it.
	running *work
	cancel  context.CancelFunc
	// entered are expressions whose answers are still to be worked out.
	entered []string
	// counted is the last text that was counted, with what came out.
	counted counts
	// proposed are the completions of the word before the cursor; chosen is the completion
	// that Tab inserted last, -1 if none.
	proposed proposals
	history  history
	// ending is set once the program is about to end, for err if that is not nil.
	ending bool
	err    error
}

// work is an expression that is evaluated: for its numbers, or in full.
type work struct {
	text string
	full bool
}

// counts are the outcomes of a text.
type counts struct {
	text     string
	known    bool
	outcomes api.EvaluationOutcomes
	problem  *api.ExpressionProblem
}

// proposals are completions of the text before the cursor.
type proposals struct {
	before string
	start  int
	words  []string
	chosen int
}

// history has the expressions that were entered, and where in it one is.
type history struct {
	lines []string
	at    int
	// draft is the typed text before going back.
	draft string
}

// New makes a prompt.
func New(ctx context.Context, opts Options) *Model {
	m := &Model{opts: opts, input: textinput.New(), ctx: ctx, width: defaultWidth, history: opts.Saved.history()}
	m.input.Prompt = "> "
	m.input.Focus()
	m.look()
	return m
}

// defaultWidth is the width of a terminal that does not report one.
const defaultWidth = 80

// Init makes the cursor blink.
func (m *Model) Init() tea.Cmd { return textinput.Blink }

// Err returns why the prompt ended, nil if the user wanted it.
func (m *Model) Err() error { return m.err }

// countedMsg and answeredMsg are the results of work.
type (
	countedMsg struct {
		counts
		err error
	}
	answeredMsg struct {
		report string
		err    error
	}
)

// next starts the work that is due, if none is in progress: entered text first, then the
// current text.
func (m *Model) next() tea.Cmd {
	if m.running != nil {
		if !m.running.full && (len(m.entered) > 0 || m.running.text != m.input.Value()) {
			m.cancel()
		}
		return nil
	}
	switch text := m.input.Value(); {
	case len(m.entered) > 0:
		m.running = &work{m.entered[0], true}
		m.entered = m.entered[1:]
	case text != "" && (!m.counted.known || m.counted.text != text):
		m.running = &work{text, false}
	default:
		return nil
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(m.ctx)
	return m.do(ctx, *m.running, m.width)
}

// do returns the work itself, which runs beside everything else.
func (m *Model) do(ctx context.Context, w work, width int) tea.Cmd {
	devices, report := m.opts.Devices, m.opts.Report
	return func() tea.Msg {
		if !w.full {
			outcomes, problem, err := devices.Count(ctx, w.text)
			return countedMsg{counts{w.text, err == nil, outcomes, problem}, err}
		}
		found, err := devices.Evaluate(ctx, w.text)
		if err != nil {
			return answeredMsg{err: err}
		}
		return answeredMsg{report: report(found, width)}
	}
}

// done takes note that work has ended.
func (m *Model) done() {
	m.cancel()
	m.running = nil
}
