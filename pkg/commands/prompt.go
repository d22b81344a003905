// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// runPrompt shows the prompt until the user quits or the context is done. The terminal is
// left as it was.
func runPrompt(ctx context.Context, opts promptOptions, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// As in package tui, a signal ends the context.
	program := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(in), tea.WithOutput(out)}
	if !opts.Color {
		program = append(program, tea.WithColorProfile(colorprofile.ASCII))
	}
	m := newPrompt(ctx, opts)
	if _, err := tea.NewProgram(m, program...).Run(); err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("show the prompt: %w", err)
	}
	return m.Err()
}

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

// Update answers a key or takes a result.
func (m *promptModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = msg.Width
		m.input.SetWidth(max(msg.Width-len(m.input.Prompt)-1, 1))
		return m, nil
	case countedMsg:
		m.done()
		if msg.err == nil {
			m.counted = msg.promptCounts
		} else if !errors.Is(msg.err, context.Canceled) {
			m.err = msg.err
			return m, m.quit()
		}
		return m, m.next()
	case answeredMsg:
		m.done()
		if msg.err != nil {
			m.err = msg.err
			return m, m.quit()
		}
		return m, tea.Sequence(tea.Println(strings.TrimRight(msg.report, "\n")+"\n"), m.next())
	case tea.KeyPressMsg:
		if cmd, known := m.key(msg); known {
			return m, cmd
		}
	}
	before := m.input.Value()
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	if m.input.Value() != before {
		m.history.at = len(m.history.lines)
	}
	m.look()
	return m, tea.Batch(cmd, m.next())
}

// key answers a key that does more than to edit the line.
func (m *promptModel) key(msg tea.KeyPressMsg) (cmd tea.Cmd, known bool) {
	switch msg.String() {
	case "ctrl+c":
		return m.quit(), true
	case "ctrl+d":
		if m.input.Value() == "" {
			return m.quit(), true
		}
	case "enter":
		return m.enter(), true
	case "tab":
		m.complete(1)
		return m.next(), true
	case "shift+tab":
		m.complete(-1)
		return m.next(), true
	case "up":
		m.back(-1)
		return m.next(), true
	case "down":
		m.back(1)
		return m.next(), true
	}
	return nil, false
}

// quit ends the program, and leaves nothing on the screen but the answers.
func (m *promptModel) quit() tea.Cmd {
	m.ending = true
	return tea.Quit
}

// enter asks for the whole answer about the typed text.
func (m *promptModel) enter() tea.Cmd {
	text := strings.TrimSpace(m.input.Value())
	if text == "" {
		return nil
	}
	lines := m.history.lines
	var save tea.Cmd
	if len(lines) == 0 || lines[len(lines)-1] != text {
		lines = append(lines, text)
		save = m.save(text)
	}
	m.history = promptHistory{lines: lines, at: len(lines)}
	m.entered = append(m.entered, text)
	m.input.Reset()
	m.look()
	return tea.Batch(save, tea.Sequence(tea.Println(m.input.Prompt+text), m.next()))
}

// save keeps an expression for the next prompt. Where that is not possible, this one
// works as well.
func (m *promptModel) save(text string) tea.Cmd {
	return func() tea.Msg {
		_ = m.opts.Saved.add(text)
		return nil
	}
}

// back goes through the history, and returns in the end to the typed text.
func (m *promptModel) back(step int) {
	to := m.history.at + step
	if to < 0 || to > len(m.history.lines) {
		return
	}
	if m.history.at == len(m.history.lines) {
		m.history.draft = m.input.Value()
	}
	m.history.at = to
	text := m.history.draft
	if to < len(m.history.lines) {
		text = m.history.lines[to]
	}
	m.input.SetValue(text)
	m.input.CursorEnd()
	m.look()
}

// look finds out what the word before the cursor can become.
func (m *promptModel) look() {
	before := string([]rune(m.input.Value())[:m.input.Position()])
	start, words := m.opts.Words.Complete(before)
	m.proposed = promptProposals{before: before, start: start, words: words, chosen: -1}
}

// complete puts in what all proposals have in common or, if that is there already,
// one proposal after the other.
func (m *promptModel) complete(step int) {
	p := m.proposed
	if len(p.words) == 0 {
		return
	}
	if common := commonStart(p.words); p.chosen < 0 && len(common) > len(p.before)-p.start {
		m.replace(p.before[:p.start] + common)
		m.look()
		return
	}
	p.chosen += step
	if p.chosen < 0 && step < 0 {
		p.chosen = len(p.words) - 1
	}
	p.chosen %= len(p.words)
	m.replace(p.before[:p.start] + p.words[p.chosen])
	m.proposed = p
}

// replace puts another text before the cursor.
func (m *promptModel) replace(before string) {
	after := string([]rune(m.input.Value())[m.input.Position():])
	m.input.SetValue(before + after)
	m.input.SetCursor(len([]rune(before)))
}

func commonStart(words []string) string {
	common := words[0]
	for _, word := range words[1:] {
		for !strings.HasPrefix(word, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.ToValidUTF8(common, "")
}

const promptKeys = "tab complete, up/down history, enter full answer, ctrl+c quit"

// View draws the line that is typed, what becomes of it, and what its last word can
// become.
func (m *promptModel) View() tea.View {
	if m.ending {
		return tea.NewView("")
	}
	lines := []string{m.input.View(), "  " + m.state(), "  " + m.words()}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return tea.NewView(strings.Join(lines, "\n"))
}

// state returns what becomes of the text. While a newer text is evaluated, the state of the older
// one stays.
func (m *promptModel) state() string {
	faint := ansi.Style{}.Faint()
	text := m.input.Value()
	switch {
	case text == "" && m.running != nil:
		return faint.Styled("evaluating " + render.Escape(m.running.text))
	case text == "":
		return faint.Styled(m.opts.About)
	case !m.counted.known:
		return faint.Styled("…")
	}
	said := m.outcome()
	if m.counted.text != text {
		said += faint.Styled(" …")
	}
	return said
}

func (m *promptModel) outcome() string {
	c := &m.counted
	if c.problem != nil {
		where := ""
		if c.problem.Column > 0 {
			where = fmt.Sprintf(" at %d", c.problem.Column)
		}
		return ansi.Style{}.Faint().Styled("does not compile" + where + ": " + render.Escape(c.problem.Reason))
	}
	part := func(word string, n int, style ansi.Style) string {
		text := word + " " + english.Thousands(n)
		if n == 0 {
			return ansi.Style{}.Faint().Styled(text)
		}
		return style.Styled(text)
	}
	return strings.Join([]string{
		part("true", c.outcomes.True, ansi.Style{}.Bold().ForegroundColor(ansi.Green)),
		part("false", c.outcomes.False, ansi.Style{}.Bold()),
		part("fails", c.outcomes.Fails, ansi.Style{}.Bold().ForegroundColor(ansi.Red)),
	}, "   ") + "   of " + english.Count(m.opts.Devices.Len(), "device")
}

// words returns the proposals, as many as there is room for, from the chosen one on.
func (m *promptModel) words() string {
	p := &m.proposed
	if len(p.words) == 0 {
		return ansi.Style{}.Faint().Styled(promptKeys)
	}
	var shown []string
	room := m.width - len("  and 100 more")
	first := max(p.chosen, 0)
	for i := first; i < len(p.words); i++ {
		word := render.Escape(p.words[i])
		if room -= ansi.StringWidth(word) + 2; room < 0 && len(shown) > 0 {
			break
		}
		if i == p.chosen {
			word = ansi.Style{}.Reverse(true).Styled(word)
		}
		shown = append(shown, word)
	}
	text := strings.Join(shown, "  ")
	if more := len(p.words) - len(shown); more > 0 {
		text += ansi.Style{}.Faint().Styled(fmt.Sprintf("  and %d more", more))
	}
	return text
}
