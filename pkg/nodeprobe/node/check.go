// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// NoKubelet says why a path of the kubelet may be missing.
const NoKubelet = "no kubelet runs here, or it has another --kubelet-root"

// Check is the result of one check.
type Check struct {
	// Name identifies the check and is stable, such as "cdi/specs".
	Name  string `json:"name"`
	State State  `json:"state"`
	// Message is one line about the result.
	Message string `json:"message"`
	// Path is the file, socket or directory on the node.
	Path string `json:"path,omitempty"`
	// Found and Required are the evidence, if it is a value.
	Found    string `json:"found,omitempty"`
	Required string `json:"required,omitempty"`
}

// Good returns a check with state OK.
func Good(name, path, format string, args ...any) Check {
	return Check{Name: name, State: OK, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Bad returns a check with state Problem.
func Bad(name, path, format string, args ...any) Check {
	return Check{Name: name, State: Problem, Path: path, Message: fmt.Sprintf(format, args...)}
}

// NotKnown returns a check with state Unknown.
func NotKnown(name, path, format string, args ...any) Check {
	return Check{Name: name, State: Unknown, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Failed turns an error into a check, by the rule of [State].
func Failed(name, path string, err error) Check {
	var socket *SocketError
	switch isSocket := errors.As(err, &socket); {
	case isSocket && socket.Answer == Missing:
		return NotKnown(name, path, "%s", socket.Reason())
	case isSocket:
		return Check{Name: name, State: socket.Answer.State(), Path: path, Message: socket.Reason()}
	case errors.Is(err, fs.ErrPermission):
		return NotKnown(name, path, "no permission to look: %v", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotRead), errors.Is(err, context.Canceled):
		return NotKnown(name, path, "%v", err)
	default:
		return Bad(name, path, "%v", err)
	}
}

// Worst returns the worst state of checks: a problem is worse than unknown.
func Worst(checks []Check) State {
	worst := OK
	for _, c := range checks {
		switch c.State {
		case Problem:
			return Problem
		case Unknown:
			worst = Unknown
		case OK:
		}
	}
	return worst
}

// sampled is how many elements of a long list a message names.
const sampled = 3

// Sample enumerates a list in a message: all of a short one, some of a long one.
func Sample(list []string) string {
	if len(list) <= sampled+1 {
		return strings.Join(list, ", ")
	}
	return english.Sample(list, sampled)
}

// Unknowns collects unknown facts, so that a reason that many share is given once.
type Unknowns struct {
	reasons []string
	about   map[string][]string
}

// Add records that a fact about who is unknown, and why.
func (d *Unknowns) Add(who, reason string) {
	if d.about == nil {
		d.about = map[string][]string{}
	}
	if d.about[reason] == nil {
		d.reasons = append(d.reasons, reason)
	}
	d.about[reason] = append(d.about[reason], who)
}

// Checks returns a check of that name for each reason.
func (d *Unknowns) Checks(name string) []Check {
	checks := make([]Check, 0, len(d.reasons))
	for _, reason := range d.reasons {
		checks = append(checks, NotKnown(name, "", "%s: %s", Sample(d.about[reason]), reason))
	}
	return checks
}
