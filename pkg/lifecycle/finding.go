// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Finding is one reason that keeps a pod at a stage of its life, or one problem there, as
// far as objects in the API show.
type Finding struct {
	// Reason is a clause for the summary, empty if the verdict says it all.
	Reason string
	// Instead is set if the reason is enough, and the allocator's answer does not matter.
	Instead  bool
	Evidence []api.Evidence
	Steps    []api.NextStep
}

// AddEvidence adds evidence: the value of a field, and the required one.
func (f *Finding) AddEvidence(object api.ObjectRef, path, found, wanted string) {
	f.Evidence = append(f.Evidence, api.Evidence{Object: object, Path: path, Found: found, Required: wanted})
}

// Step adds a next step.
func (f *Finding) Step(actor, format string, args ...any) {
	f.Steps = append(f.Steps, api.NextStep{Actor: actor, Text: fmt.Sprintf(format, args...)})
}

// Actor returns who can act: the user if a step is theirs, else an administrator, else
// nobody. It is empty if there are no steps.
func Actor(steps []api.NextStep) string {
	for _, actor := range []string{api.ActorUser, api.ActorAdmin, api.ActorNobody} {
		if slices.ContainsFunc(steps, func(step api.NextStep) bool { return step.Actor == actor }) {
			return actor
		}
	}
	return ""
}

// maxReasons limits how many findings a summary has room for.
const maxReasons = 3

// Summarize puts the reasons of findings before the allocator's verdict. Repeated reasons
// occur once.
func Summarize(findings []Finding, verdict string) string {
	var reasons []string
	instead := false
	for _, f := range findings {
		if f.Reason != "" && !slices.Contains(reasons, f.Reason) {
			reasons = append(reasons, f.Reason)
			instead = instead || f.Instead
		}
	}
	if len(reasons) == 0 {
		return verdict
	}
	text := strings.Join(reasons[:min(len(reasons), maxReasons)], "; ")
	if more := len(reasons) - maxReasons; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	if !instead && verdict != "" {
		text += "; then: " + verdict
	}
	return text
}
