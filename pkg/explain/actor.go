// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// Actor returns who can help a target that waits: the user if one of the remedies is
// theirs, else an admin, else who the next steps are for. It is empty where nothing is
// known that would help.
func Actor(e *api.Explanation) string {
	if len(e.Remedies) == 0 {
		return lifecycle.Actor(e.NextSteps)
	}
	steps := make([]api.NextStep, 0, len(e.Remedies))
	for i := range e.Remedies {
		steps = append(steps, api.NextStep{Actor: e.Remedies[i].Actor})
	}
	return lifecycle.Actor(steps)
}
