// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Check is one thing that can be wrong with manifests.
type Check struct {
	// Code is stable: "DRA", the number of the group, and the number of the check in it.
	Code string
	// Title names the problem in a few words.
	Title string
	// Severity is the severity of its findings, unless they have their own.
	Severity api.Severity
	// About says what it means, Advice what can be done, both for the documents.
	About, Advice string

	// needsCluster is true if it cannot be made without a cluster.
	needsCluster bool

	find func(*input) []finding
}

// finding is a finding of a check in an object.
type finding struct {
	object *object
	// path is the field, as in objects of the newest version.
	path string
	// at is the position if it is not the field's.
	at position
	// severity is the check's severity if it is empty.
	severity        api.Severity
	message         string
	found, required string
	advice          string
	fix             []edit
}

// edit is one operation on the text of an object. The path is as in finding.
type edit struct {
	op, path string
	value    any
}

// finding converts f to a finding of the check.
func (c *Check) finding(f *finding) api.Finding {
	o := f.object
	out := api.Finding{
		Code: c.Code, Title: c.Title, Severity: c.Severity, Message: f.message,
		File: o.text.File, Line: f.at.line, Column: f.at.column,
	}
	if f.severity != "" {
		out.Severity = f.severity
	}
	path := f.path
	if f.at == (position{}) {
		place := o.locate(f.path)
		out.Line, out.Column = place.line, place.column
		path = place.path
	}
	if o.name != "" {
		out.Objects, out.ObjectCount = []api.ObjectRef{o.ref()}, 1
	}
	if f.found != "" || f.required != "" {
		out.Evidence = []api.Evidence{{Object: o.ref(), Path: path, Found: f.found, Required: f.required}}
	}
	if f.advice != "" {
		out.Remedy = &api.NextStep{Actor: api.ActorUser, Text: f.advice}
	}
	for _, e := range f.fix {
		change := api.Edit{Object: o.ref(), Op: e.op, Path: o.pointer(e.path)}
		if e.op != "remove" {
			// Only texts, numbers and what was decoded before.
			change.Value, _ = json.Marshal(e.value)
		}
		out.Fix = append(out.Fix, change)
	}
	return out
}
