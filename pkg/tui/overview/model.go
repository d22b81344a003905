// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Model is the content of the first page.
type Model struct {
	// Verdict says in a line how the cluster is.
	Verdict []Mark
	Classes Section[Class]
	Causes  Section[Cause]
	// Severities explain the signs of the causes.
	Severities []string
	// Changes says what changed since somebody looked; empty if nothing did.
	Changes string
	// Stuck are the pods that wait, and others that do not run.
	Stuck Section[Stuck]
	// Pods counts the pods that are stuck, Waiting is how that changed over the last
	// hour, from 0 to 1; a negative value is not known.
	Pods    int
	Waiting []float64
	Teams   Section[Team]
	Events  Section[Event]
	// Nodes are the cells of the map of nodes; none where there is no map. NodesTitle counts them,
	// NodeLegend explains the signs of narrow cells, or of others, Room says how many large claims fit,
	// the most important text of both first, and OpenNodes is opened for all of them.
	Nodes      []widget.HeatGroup
	NodesTitle string
	NodeLegend func(narrow bool) []string
	Room       []string
	OpenNodes  any
	// Node returns the node of a cell, by its key.
	Node func(key string) Node
	// Names are the short names of classes.
	Names map[string]string
}

// Section is a part of the page.
type Section[T any] struct {
	Rows []T
	// None is said if there are no rows.
	None string
	// All is opened for those that there is no room for; nil if nothing is.
	All any
}

// Mark is a part of the verdict.
type Mark struct {
	Sign string
	Tone widget.Tone
	Text string
}

// Class is a row of the capacity: a DeviceClass, or a driver where there is none.
type Class struct {
	Name   string
	Counts api.DeviceCounts
	// Used, Free and Placeable are texts: a number may be a bound, or not known (yet).
	Used, Free, Placeable string
	// Waiting counts the pods that wait for it.
	Waiting int
	// Note describes a problem of the class itself.
	Note string
	// History is the share in use over the last hour, from 0 to 1; a negative value is
	// not known.
	History []float64
	Open    any
	// Item is the item of the row, nil if it has none; so it is in other rows.
	Item any
}

// Cause is a row of the causes.
type Cause struct {
	// Key tells rows apart, Mark says that it is new or over; it may be empty.
	Key, Mark string
	// Number is the number in a status, Sign its severity; empty for a cause that is over.
	Number, Sign string
	// Age is for how long pods suffer from it, empty if that is not known.
	Age, Message string
	// Pods counts the pods that suffer, and Affected names them. Who can act, Step says what they can
	// do, and Then what changes then.
	Pods                      int
	Affected, Who, Step, Then string
	Tone                      widget.Tone
	// Lines draw all that is known, no line wider than width.
	Lines      func(width int) []string
	Open, Item any
}

// Stuck are pods that wait, or cannot work with their devices, and get the same answer.
type Stuck struct {
	// Wait is how long the first of them has been waiting, empty if that is not known.
	Wait string
	// Key tells rows apart.
	Key string
	// Name is the name of the pod, or of the pods' owner; Count counts the pods.
	Name  string
	Count int
	Asks  string
	// Answer is the answer in a few words, Reason what these do not say, Summary the sentence, and Step
	// what somebody can do; empty as long as they are not known.
	Answer, Reason, Summary, Step string
	Tone                          widget.Tone
	// Lines draw the answer for the first of them, no line wider than width; nil without one.
	Lines func(width int) []string
	Open  any
	// Item is the first of them.
	Item any
}

// Team is a namespace's used and awaited devices.
type Team struct {
	api.Team
	Open any
}

// Event is something that happened.
type Event struct {
	// Key tells rows apart.
	Key string
	At  time.Time
	// When is the time in a few letters.
	When       string
	Tone       widget.Tone
	Text       string
	Open, Item any
}

// Node is a cell of the map.
type Node struct {
	// About are the lines of its description.
	About      []string
	Open, Item any
}
