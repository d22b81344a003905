// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Kind is the kind of a change.
type Kind int

// The kinds of changes.
const (
	// Taint adds a DeviceTaintRule, Untaint removes one.
	Taint Kind = iota
	Untaint
	Uncordon
	DeleteClaim
)

// Change is a change of a cluster that somebody asks for.
type Change struct {
	Kind Kind
	// Namespace and Name identify the rule, the node or the claim.
	Namespace, Name string
	// Driver, Pool and Device choose what gets a taint; an empty Device is all of a
	// pool. Taint is KEY[=VALUE]:EFFECT.
	Driver, Pool, Device, Taint string
}

// String says what the change does, and to which object.
func (c Change) String() string {
	switch c.Kind {
	case Taint:
		text := "taint pool " + c.Pool + " of " + c.Driver
		if c.Device != "" {
			text = "taint device " + c.Driver + "/" + c.Pool + "/" + c.Device
		}
		if c.Taint != "" {
			text += " with " + c.Taint
		}
		return text
	case Untaint:
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
