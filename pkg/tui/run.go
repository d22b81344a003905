// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/overview"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
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
	profile := colorprofile.ASCII
	if opts.Color {
		profile = colorprofile.Detect(out, os.Environ())
	}
	opts.fewColors = profile == colorprofile.ANSI
	program = append(program, tea.WithColorProfile(profile))
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
// where there never is: that is half of what the dashboard takes at rest. Less often, and a key
// would not be on the screen in 50 milliseconds.
const framesPerSecond = 25

// Operations of XTWINOPS on the title of the window.
const (
	saveTitle     = 22
	restoreTitle  = 23
	titleOfWindow = 2
)

// Once writes the overview of a cluster as text, as wide as width or, for 0, as wide as it needs, and
// what could not be read. It returns what it has written of.
func Once(ctx context.Context, opts Options, snap *snapshot.Snapshot, width int, w io.Writer) (*inventory.Overview, error) {
	look := widget.NewLook(opts.Env)
	// Whoever asks for colors gets them, whatever is known of the terminal.
	profile := max(colorprofile.Env(os.Environ()), colorprofile.ANSI)
	look.SetTheme(cmp.Or(opts.Settings.Theme, widget.NewTheme(widget.ThemeDefault)), profile == colorprofile.ANSI)
	c := cluster.New(snap)
	causes, found, err := live.FindCauses(ctx, c, opts.Namespace)
	if err != nil {
		return nil, err
	}
	o := found.Examination.Survey.Overview(inventory.Known{Namespace: opts.Namespace, Reason: func(*corev1.Pod) api.StuckReason { return api.StuckReason{} }})
	page := &views.Summary{Look: &look, Cluster: c, Inventory: found.Examination.Inventory, Fixed: true, Causes: causes}
	lines := append([]string{clusterTitle(&look, opts.Context, opts.Name, opts.Namespace, 0) + "  " + snap.Now().Format(time.DateTime)}, overview.Plain(&look, page.Model(o), max(width, 0))...)
	for _, note := range o.Assumptions {
		lines = append(lines, "Note: "+render.Escape(note))
	}
	text := look.Fit(strings.Join(lines, "\n") + "\n")
	if !opts.Color {
		text = ansi.Strip(text)
	}
	if _, err := (&colorprofile.Writer{Forward: w, Profile: profile}).WriteString(text); err != nil {
		return nil, fmt.Errorf("print the overview: %w", err)
	}
	return o, nil
}
