// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Finding is one thing that keeps a pod at a stage of its life, or that is
// wrong with it there, as far as objects in the API tell.
type Finding struct {
	// Reason is a clause for the summary, empty if the verdict says it all.
	Reason string
	// Instead is set if the reason says all that people need to know, and
	// what the allocator has to say does not matter.
	Instead  bool
	Evidence []api.Evidence
	Steps    []api.NextStep
}

// AddEvidence adds evidence: what a field has, and what it should have.
func (f *Finding) AddEvidence(object, path, found, wanted string) {
	f.Evidence = append(f.Evidence, api.Evidence{Object: object, Path: path, Found: found, Required: wanted})
}

// Step adds what somebody can do about it.
func (f *Finding) Step(actor, format string, args ...any) {
	f.Steps = append(f.Steps, api.NextStep{Actor: actor, Text: fmt.Sprintf(format, args...)})
}

// Actor returns who can help: the user if a step is theirs, else an administrator, else
// nobody. It is empty where there are no steps.
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

// Summarize puts the reasons of findings in front of what the allocator has to
// say. What is found twice is said once.
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
