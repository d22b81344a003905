// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// EventCode says what happened to an object.
type EventCode string

// The codes of events. Devices of pods are unhealthy as kubelets report it; nodes count if
// they have devices.
const (
	ClaimCreated       EventCode = "ClaimCreated"
	ClaimAllocated     EventCode = "ClaimAllocated"
	ClaimDeallocated   EventCode = "ClaimDeallocated"
	ClaimDeleted       EventCode = "ClaimDeleted"
	ClaimReleased      EventCode = "ClaimReleased"
	PodUnhealthy       EventCode = "PodUnhealthy"
	PodHealthy         EventCode = "PodHealthy"
	SlicePublished     EventCode = "SlicePublished"
	SliceRemoved       EventCode = "SliceRemoved"
	SliceRenewed       EventCode = "SliceRenewed"
	NodeDeleted        EventCode = "NodeDeleted"
	NodeCordoned       EventCode = "NodeCordoned"
	NodeUncordoned     EventCode = "NodeUncordoned"
	NodeBecameNotReady EventCode = "NodeBecameNotReady"
	NodeBecameReady    EventCode = "NodeBecameReady"
	RuleCreated        EventCode = "RuleCreated"
	RuleDeleted        EventCode = "RuleDeleted"
)

// EventKind is the kind of the objects of an event.
type EventKind string

// The kinds.
const (
	EventOfClaim EventKind = "claim"
	EventOfPod   EventKind = "pod"
	EventOfNode  EventKind = "node"
	// EventOfSlice is a change of a ResourceSlice, named as its pool: DRIVER/POOL.
	EventOfSlice EventKind = "slice"
	EventOfRule  EventKind = "taint rule"
)

// Kind returns the kind of the objects of an event.
func (c EventCode) Kind() EventKind {
	switch c {
	case ClaimCreated, ClaimAllocated, ClaimDeallocated, ClaimDeleted, ClaimReleased:
		return EventOfClaim
	case PodUnhealthy, PodHealthy:
		return EventOfPod
	case SlicePublished, SliceRemoved, SliceRenewed:
		return EventOfSlice
	case NodeDeleted, NodeCordoned, NodeUncordoned, NodeBecameNotReady, NodeBecameReady:
		return EventOfNode
	default:
		return EventOfRule
	}
}

// Event is a change of an object, or the same change of several.
type Event struct {
	// At is when it happened to the first object, Last when to the last one.
	At, Last time.Time
	Code     EventCode
	// Namespace is the namespace of all objects, empty for objects without.
	Namespace string
	// Count is how many objects there are.
	Count int
	// name is the first object, and detail what there is to say about it alone.
	name, detail string
	// devices counts the devices of all objects.
	devices int
	// objects has for each object what [Event.Objects] calls it.
	objects map[string]string
}

// Key returns a key that no other event of a log has.
func (e *Event) Key() string {
	return strings.Join([]string{e.At.Format(time.RFC3339Nano), e.Namespace, string(e.Code)}, " ")
}

// Objects returns the names of the objects, at most a thousand.
func (e *Event) Objects() map[string]bool {
	names := map[string]bool{}
	for _, name := range e.objects {
		names[name] = true
	}
	return names
}

// String returns "claim ml/train was allocated gpu-01/gpu-0", or "3 claims of ml were
// allocated 12 devices".
func (e *Event) String() string {
	one, many := e.Code.words(english.Count(e.devices, "device"))
	kind := string(e.Code.Kind())
	if e.Count == 1 {
		return kind + " " + e.name + " " + one + e.detail
	}
	if e.Namespace != "" {
		many = "of " + e.Namespace + " " + many
	}
	return english.Count(e.Count, kind) + " " + many
}

// words say what happened to one object, and to several that have so many devices together.
func (c EventCode) words(devices string) (one, many string) {
	switch c {
	case ClaimCreated, RuleCreated:
		return "was created", "were created"
	case ClaimDeleted, RuleDeleted:
		return "was deleted", "were deleted"
	case ClaimReleased:
		return "was deleted, ", "were deleted, and " + devices + " were released"
	case ClaimAllocated:
		return "was allocated ", "were allocated " + devices
	case ClaimDeallocated:
		return "was deallocated", "were deallocated, " + devices
	case PodUnhealthy:
		return "has an unhealthy device", "have unhealthy devices"
	case PodHealthy:
		return "has healthy devices again", "have healthy devices again"
	case NodeDeleted:
		return "was deleted", "were deleted"
	case NodeCordoned:
		return "was cordoned", "were cordoned"
	case NodeUncordoned:
		return "was uncordoned", "were uncordoned"
	case NodeBecameNotReady:
		return "became not ready", "became not ready"
	case NodeBecameReady:
		return "became ready", "became ready"
	case SlicePublished:
		return "was published", "were published, " + devices
	case SliceRemoved:
		return "was removed", "were removed, " + devices
	case SliceRenewed:
		return "is at generation ", "have another generation, " + devices
	default:
		return string(c), string(c)
	}
}

// allocatedText names the device of an allocated claim, or counts them.
func allocatedText(claim *resourceapi.ResourceClaim) string {
	results := claim.Status.Allocation.Devices.Results
	if len(results) == 1 {
		return results[0].Pool + "/" + results[0].Device
	}
	return english.Count(len(results), "device")
}

// releasedText says that the devices of a claim are free.
func releasedText(claim *resourceapi.ResourceClaim) string {
	n := len(claim.Status.Allocation.Devices.Results)
	if n == 1 {
		return "its device was released"
	}
	return "its " + english.Count(n, "device") + " were released"
}

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
