// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"strings"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Kind is what kind of object an event is about.
type Kind string

// The kinds.
const (
	Claim Kind = "claim"
	Pod   Kind = "pod"
	Node  Kind = "node"
	// Slice is a ResourceSlice, named as its pool: DRIVER/POOL.
	Slice Kind = "slice"
	Rule  Kind = "taint rule"
)

// Event is what happened to an object, or the same to several.
type Event struct {
	// At is when it happened to the first object, Last when to the last one.
	At, Last time.Time
	Tone     widget.Tone
	Kind     Kind
	// Namespace is that of all objects, empty for objects without.
	Namespace string
	// Count is how many objects there are.
	Count int
	// text is about the first object, were what happened to all of them, behind their
	// count; DEVICES in it stands for how many devices they have together.
	text, were string
	devices    int
	// objects has for each object what [Event.Objects] calls it.
	objects map[string]string
}

// Key is the same for no other event of a log.
func (e *Event) Key() string {
	return strings.Join([]string{e.At.Format(time.RFC3339Nano), string(e.Kind), e.Namespace, e.were}, " ")
}

// Objects are the names of the objects, but not of more than a thousand.
func (e *Event) Objects() map[string]bool {
	names := map[string]bool{}
	for _, name := range e.objects {
		names[name] = true
	}
	return names
}

// String is "claim ml/train was allocated gpu-01/gpu-0", or "3 claims of ml were allocated
// 12 devices".
func (e *Event) String() string {
	if e.Count == 1 {
		return e.text
	}
	of := english.Count(e.Count, string(e.Kind))
	if e.Namespace != "" {
		of += " of " + e.Namespace
	}
	return of + " " + strings.ReplaceAll(e.were, "DEVICES", devices(e.devices))
}

const (
	// kept is how many events are remembered, objectsKept how many objects of each.
	kept        = 100
	objectsKept = 1000
	// apart is the time after which the same is told on a line of its own.
	apart = time.Minute
)

// Log is what happened, what happened last of all at the end.
type Log struct {
	events []Event
	// times counts the events that there ever were.
	times int
}

// Version changes with every event.
func (l *Log) Version() int { return l.times }

// Events are copies of what is remembered, the newest first.
func (l *Log) Events() []Event {
	list := slices.Clone(l.events)
	slices.Reverse(list)
	return list
}

// Add puts events to those that are known. Equal ones are one, unless the first of them was
// long ago.
func (l *Log) Add(since []Event) {
	l.times += len(since)
	for i := range since {
		next := &since[i]
		at := -1
		for j := len(l.events) - 1; j >= 0 && at < 0; j-- {
			if e := &l.events[j]; e.Kind == next.Kind && e.Namespace == next.Namespace && e.were == next.were && next.At.Sub(e.At) < apart {
				at = j
			}
		}
		if at < 0 {
			l.events = append(l.events, *next)
			continue
		}
		// What goes on is the newest.
		e := l.events[at]
		l.events = append(slices.Delete(l.events, at, at+1), e)
		e.Last = next.Last
		for object, name := range next.objects {
			_, again := e.objects[object]
			switch {
			case !again:
				e.Count, e.devices = e.Count+1, e.devices+next.devices
			case e.Count == 1:
				e.text, e.devices = next.text, next.devices
			}
			if len(e.objects) < objectsKept {
				e.objects[object] = name
			}
		}
		l.events[len(l.events)-1] = e
	}
	l.events = l.events[max(len(l.events)-kept, 0):]
}

func devices(n int) string { return english.Count(n, "device") }
