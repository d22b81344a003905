// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/overview"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/summary"
)

// Run shows a dashboard on a terminal until the user quits or the context is
// done. The terminal is left as it was.
func Run(ctx context.Context, opts Options, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A signal ends the context. Bubble Tea's own handler would wait forever to send
	// a message to a program that the context has ended already, with the terminal
	// still raw.
	program := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond)}
	if !opts.Color {
		program = append(program, tea.WithColorProfile(colorprofile.ASCII))
	}
	// The terminal keeps its title aside. Bubble Tea would leave it without any.
	if _, err := io.WriteString(out, ansi.WindowOp(saveTitle, titleOfWindow)); err != nil {
		return fmt.Errorf("show the dashboard: %w", err)
	}
	// Nothing is left to do when the terminal is gone.
	defer func() { _, _ = io.WriteString(out, ansi.WindowOp(restoreTitle, titleOfWindow)) }()
	if _, err := tea.NewProgram(newApp(ctx, opts), program...).Run(); err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("show the dashboard: %w", err)
	}
	return nil
}

// framesPerSecond is how often Bubble Tea looks whether there is something new to draw, also
// where there never is: twice as often would take more of a processor than all else at rest.
const framesPerSecond = 30

// Operations of XTWINOPS on the title of the window.
const (
	saveTitle     = 22
	restoreTitle  = 23
	titleOfWindow = 2
)

// Once writes the overview as text, as wide as width or, for 0, as wide as it
// needs, and what could not be read.
func Once(ctx context.Context, opts Options, width int, w io.Writer) error {
	if width <= 0 {
		width = noLimit
	}
	m := New(ctx, opts)
	m.width, m.height = width, noLimit
	if err := m.live.Now(ctx); err != nil {
		return err
	}
	p := m.live.Picture()
	known, err := summary.NewFacts(ctx, p)
	if err != nil {
		return err
	}
	model := m.first.summary(m.host).Model(known)
	if width == noLimit {
		width = 0
	}
	lines := append([]string{m.title() + "  " + m.live.Taken(&m.look)}, overview.Plain(&m.look, model, width)...)
	notes := p.Gaps
	if !p.KnowsNamespace(m.namespace) {
		notes = append([]string{"namespace " + m.namespace + " does not exist"}, notes...)
	}
	for _, note := range notes {
		lines = append(lines, "Note: "+render.Escape(note))
	}
	text := m.look.Fit(strings.Join(lines, "\n") + "\n")
	if !opts.Color {
		text = ansi.Strip(text)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("print the overview: %w", err)
	}
	for i := range known.Classes {
		if text := inventory.UnendingText(known.Classes[i].Failures); text != "" {
			return &IncompleteError{fmt.Sprintf("class %s: %s", known.Classes[i].Name, text)}
		}
	}
	return nil
}

// IncompleteError says that something in the overview is not known, since an
// expression does not end. The rest is printed.
type IncompleteError struct{ Reason string }

func (e *IncompleteError) Error() string { return e.Reason }
