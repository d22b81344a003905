// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// State is how a check came out. All checks hold to one rule: what is known to
// be broken is a [Problem], what could not be known is [Unknown], and what a
// machine need not have is [OK]. Something that is not there is a problem only
// if something else says that it has to be: a file that names it, a claim of the
// cluster. For what is only looked for, it may be that this is the wrong place.
type State string

const (
	// OK is something that is as it should be, or that does not concern this
	// machine; the message says so then.
	OK State = "OK"
	// Problem is something that is known to be broken.
	Problem State = "Problem"
	// Unknown is something that could not be known; the message says why.
	Unknown State = "Unknown"
)

// NoKubelet is what it may mean that something of the kubelet is not there.
const NoKubelet = "no kubelet runs here, or it has another --kubelet-root"

// ErrNotRead is something that was left alone, so that nothing is known of it.
var ErrNotRead = errors.New("was not read")

// Check is one thing that was looked at.
type Check struct {
	// Name is stable: what was looked at, such as "cdi/specs".
	Name  string `json:"name"`
	State State  `json:"state"`
	// Message is one line: what was found.
	Message string `json:"message"`
	// Path is the file, socket or directory, as the node names it.
	Path string `json:"path,omitempty"`
	// Found and Required are the evidence, if it is a value.
	Found    string `json:"found,omitempty"`
	Required string `json:"required,omitempty"`
}

// Good is a check of something that is in order.
func Good(name, path, format string, args ...any) Check {
	return Check{Name: name, State: OK, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Bad is a check of something that is not.
func Bad(name, path, format string, args ...any) Check {
	return Check{Name: name, State: Problem, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Unseen is a check of something that could not be known.
func Unseen(name, path, format string, args ...any) Check {
	return Check{Name: name, State: Unknown, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Failed turns an error of looking into a check, by the rule of [State].
func Failed(name, path string, err error) Check {
	var socket *SocketError
	switch isSocket := errors.As(err, &socket); {
	case isSocket && socket.Answer == Missing:
		return Unseen(name, path, "%s", socket.Reason())
	case isSocket:
		return Check{Name: name, State: socket.Answer.State(), Path: path, Message: socket.Reason()}
	case errors.Is(err, fs.ErrPermission):
		return Unseen(name, path, "no permission to look: %v", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotRead), errors.Is(err, context.Canceled):
		return Unseen(name, path, "%v", err)
	default:
		return Bad(name, path, "%v", err)
	}
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
