// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// promptDevices evaluates expressions for devices. Its methods are called one at a time, outside
// of Update.
type promptDevices interface {
	// Count evaluates an expression that is being typed.
	Count(ctx context.Context, expression string) (api.EvaluationOutcomes, *api.ExpressionProblem, error)
	// Evaluate answers about an expression that was entered.
	Evaluate(ctx context.Context, expression string) (*api.Evaluation, error)
	Len() int
}

// promptWords complete expressions, at once.
type promptWords interface {
	Complete(before string) (start int, words []string)
}

// promptOptions configure a prompt.
type promptOptions struct {
	Devices promptDevices
	Words   promptWords
	// Report writes the answer about an expression that was entered, as wide as the
	// terminal.
	Report func(e *api.Evaluation, width int) string
	// About says in a few words which devices there are.
	About string
	Color bool
	// Saved has earlier input.
	Saved savedExpressions
}

// promptModel is the state of the prompt of "kubectl dra cel": an expression is evaluated while
// it is typed, its words can be completed, and entered expressions come back.
//
// Everything that takes time runs in a [tea.Cmd], one at a time: the text at the moment when one
// ends is the next to be evaluated, and what became outdated is cancelled.
type promptModel struct {
	opts  promptOptions
	input textinput.Model
	width int
	// ctx is the context of the program.
	ctx context.Context //nolint:containedctx // a model cannot be given one
	// running is the work in progress, nil if there is none; cancel ends it.
	running *promptWork
	cancel  context.CancelFunc
	// entered are expressions whose answers are still to be worked out.
	entered []string
	// counted is the last text that was counted, with what came out.
	counted promptCounts
	// proposed are the completions of the word before the cursor; chosen is the completion
	// that Tab inserted last, -1 if none.
	proposed promptProposals
	history  promptHistory
	// ending is set once the program is about to end, for err if that is not nil.
	ending bool
	err    error
}

// promptWork is an expression that is evaluated: for its numbers, or in full.
type promptWork struct {
	text string
	full bool
}

// promptCounts are the outcomes of a text.
type promptCounts struct {
	text     string
	known    bool
	outcomes api.EvaluationOutcomes
	problem  *api.ExpressionProblem
}

// promptProposals are completions of the text before the cursor.
type promptProposals struct {
	before string
	start  int
	words  []string
	chosen int
}

// promptHistory has the expressions that were entered, and where in it one is.
type promptHistory struct {
	lines []string
	at    int
	// draft is the typed text before going back.
	draft string
}

// newPrompt makes a prompt.
func newPrompt(ctx context.Context, opts promptOptions) *promptModel {
	m := &promptModel{opts: opts, input: textinput.New(), ctx: ctx, width: promptWidth, history: opts.Saved.history()}
	m.input.Prompt = "> "
	m.input.Focus()
	m.look()
	return m
}

// promptWidth is the width of a terminal that does not report one.
const promptWidth = 80

// Init makes the cursor blink.
func (m *promptModel) Init() tea.Cmd { return textinput.Blink }

// Err returns why the prompt ended, nil if the user wanted it.
func (m *promptModel) Err() error { return m.err }

// countedMsg and answeredMsg are the results of work.
type (
	countedMsg struct {
		promptCounts
		err error
	}
	answeredMsg struct {
		report string
		err    error
	}
)

// next starts the work that is due, if none is in progress: entered text first, then the
// current text.
func (m *promptModel) next() tea.Cmd {
	if m.running != nil {
		if !m.running.full && (len(m.entered) > 0 || m.running.text != m.input.Value()) {
			m.cancel()
		}
		return nil
	}
	switch text := m.input.Value(); {
	case len(m.entered) > 0:
		m.running = &promptWork{m.entered[0], true}
		m.entered = m.entered[1:]
	case text != "" && (!m.counted.known || m.counted.text != text):
		m.running = &promptWork{text, false}
	default:
		return nil
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(m.ctx)
	return m.do(ctx, *m.running, m.width)
}

// do returns the work itself, which runs beside everything else.
func (m *promptModel) do(ctx context.Context, w promptWork, width int) tea.Cmd {
	devices, report := m.opts.Devices, m.opts.Report
	return func() tea.Msg {
		if !w.full {
			outcomes, problem, err := devices.Count(ctx, w.text)
			return countedMsg{promptCounts{w.text, err == nil, outcomes, problem}, err}
		}
		found, err := devices.Evaluate(ctx, w.text)
		if err != nil {
			return answeredMsg{err: err}
		}
		return answeredMsg{report: report(found, width)}
	}
}

// done takes note that work has ended.
func (m *promptModel) done() {
	m.cancel()
	m.running = nil
}
