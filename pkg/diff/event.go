// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"strings"
	"time"
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
