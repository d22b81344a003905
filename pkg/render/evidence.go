// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// looks reports whether a command changes nothing.
func looks(command string) bool {
	return slices.ContainsFunc([]string{"kubectl get ", "kubectl describe ", "kubectl logs ", "kubectl dra "}, func(begin string) bool { return strings.HasPrefix(command, begin) }) &&
		!strings.HasPrefix(command, "kubectl dra taints ") && !strings.Contains(command, " | ")
}

// evidenceLine returns a fact in one line: the object, the field, the value found and the
// value required.
func evidenceLine(fact *api.Evidence) string {
	text := fact.Object.String()
	if fact.Path != "" {
		text += " " + fact.Path
	}
	if fact.Found != "" {
		text += ": " + fact.Found
	}
	if fact.Required != "" {
		text += " (required: " + fact.Required + ")"
	}
	return text
}
