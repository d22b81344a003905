// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// ChangeKind is the kind of a change.
type ChangeKind int

// The kinds of changes.
const (
	// AddTaint adds a DeviceTaintRule, RemoveTaint removes one.
	AddTaint ChangeKind = iota
	RemoveTaint
	Uncordon
	DeleteClaim
)

// Change is a change of a cluster that somebody asks for.
type Change struct {
	Kind ChangeKind
	// Namespace and Name identify the rule, the node or the claim.
	Namespace, Name string
	// Driver, Pool and Device choose what gets a taint; an empty Device is all of a
	// pool. Taint is KEY[=VALUE]:EFFECT.
	Driver, Pool, Device, Taint string
}

// String says what the change does, and to which object.
func (c Change) String() string {
	switch c.Kind {
	case AddTaint:
		text := "taint pool " + c.Pool + " of " + c.Driver
		if c.Device != "" {
			text = "taint device " + c.Driver + "/" + c.Pool + "/" + c.Device
		}
		if c.Taint != "" {
			text += " with " + c.Taint
		}
		return text
	case RemoveTaint:
		return "remove taint rule " + c.Name
	case Uncordon:
		return "uncordon node " + c.Name
	case DeleteClaim:
		return "delete claim " + c.Namespace + "/" + c.Name
	default:
		return ""
	}
}

// Plan describes the effect of a change.
type Plan struct {
	// Command does the same in a shell.
	Command string
	// Effects says what the change does, in lines.
	Effects string
	// Warning comes before anything else; empty for none.
	Warning string
	// Do makes the change and describes it. It fails with a [*StaleError] if the object of
	// the plan is gone, or is another one.
	Do func(ctx context.Context) (done string, err error) `json:"-"`
}

// StaleError means that the object of a plan no longer exists.
type StaleError struct{ Err error }

// Error says which object that is.
func (e *StaleError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StaleError) Unwrap() error { return e.Err }

// Changer changes a cluster.
type Changer interface {
	// CheckTaint fails if a text is not KEY[=VALUE]:EFFECT.
	CheckTaint(text string) error
	// Plan works out what a change does to a cluster; nothing is changed yet.
	Plan(ctx context.Context, snap *snapshot.Snapshot, change Change) (*Plan, error)
}

// Lines show a plan.
func (p *Plan) Lines(l *widget.Look, width int) []string {
	var lines []string
	if p.Warning != "" {
		for _, line := range wrapLines(p.Warning, 0, width) {
			lines = append(lines, l.Say(widget.Bad, line))
		}
		lines = append(lines, "")
	}
	lines = append(lines, l.Say(widget.Strong, "The command that does the same"))
	for _, line := range widget.Wrap(render.Escape(p.Command), width-2) {
		lines = append(lines, "  "+line)
	}
	lines = append(lines, "", l.Say(widget.Strong, "What it does"))
	for _, line := range strings.Split(strings.TrimRight(p.Effects, "\n"), "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		lines = append(lines, wrapLines(line[indent:], indent+2, width)...)
	}
	return lines
}

func wrapLines(text string, indent, width int) []string {
	lines := strings.Split(ansi.Wrap(render.Escape(text), max(width-indent, 10), ""), "\n")
	for i := range lines {
		lines[i] = strings.Repeat(" ", indent) + lines[i]
	}
	return lines
}
