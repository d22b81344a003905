// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"time"
)

const (
	// eventsKept is how many events are remembered, objectsKept how many objects of each.
	eventsKept  = 100
	objectsKept = 1000
	// apart is the time after which the same is told on a line of its own.
	apart = time.Minute
)

// EventLog is a list of events, the newest last.
type EventLog struct {
	events []Event
	// times counts the events that there ever were.
	times int
}

// Version changes with every event.
func (l *EventLog) Version() int { return l.times }

// Events returns copies of the events that are remembered, the newest first.
func (l *EventLog) Events() []Event {
	list := slices.Clone(l.events)
	slices.Reverse(list)
	return list
}

// Add puts events to those that are known. Equal ones are one, unless the first of them was
// long ago.
func (l *EventLog) Add(since []Event) {
	l.times += len(since)
	for i := range since {
		next := &since[i]
		at := -1
		for j := len(l.events) - 1; j >= 0 && at < 0; j-- {
			if e := &l.events[j]; e.Code == next.Code && e.Namespace == next.Namespace && next.At.Sub(e.At) < apart {
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
				e.name, e.detail, e.devices = next.name, next.detail, next.devices
			}
			if len(e.objects) < objectsKept {
				e.objects[object] = name
			}
		}
		l.events[len(l.events)-1] = e
	}
	l.events = l.events[max(len(l.events)-eventsKept, 0):]
}
