// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
)

// State is how a check came out.
type State string

const (
	// OK is something that is as it should be.
	OK State = "OK"
	// Problem is something that is not.
	Problem State = "Problem"
	// Unknown is something that could not be looked at; the message says why.
	Unknown State = "Unknown"
)

// Check is one thing that was looked at.
type Check struct {
	// Name is stable: what was looked at, such as "cdi/specs".
	Name  string `json:"name"`
	State State  `json:"state"`
	// Message is one line: what was found.
	Message string `json:"message"`
	// Path is the file, socket or directory, as the node names it.
	Path string `json:"path,omitempty"`
	// Found and Wanted are the evidence, if it is a value.
	Found  string `json:"found,omitempty"`
	Wanted string `json:"wanted,omitempty"`
}

// Good is a check of something that is in order.
func Good(name, path, format string, args ...any) Check {
	return Check{Name: name, State: OK, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Bad is a check of something that is not.
func Bad(name, path, format string, args ...any) Check {
	return Check{Name: name, State: Problem, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Unseen is a check of something that could not be looked at.
func Unseen(name, path, format string, args ...any) Check {
	return Check{Name: name, State: Unknown, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Failed turns an error of looking into a check: missing rights and time leave
// open how things are, everything else is a problem.
func Failed(name, path string, err error) Check {
	if errors.Is(err, fs.ErrPermission) {
		return Unseen(name, path, "no permission to look: %v", err)
	}
	return Bad(name, path, "%v", err)
}

// Worst is the state of several checks together: a problem beats what is
// unknown.
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
