// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"

// Actor is who can help a target that waits: the user if one of the remedies is
// theirs, else an admin, else who the next steps are for. It is empty where
// nothing is known that would help.
func Actor(e *api.Explanation) string {
	found := map[string]bool{}
	for i := range e.Remedies {
		found[e.Remedies[i].Actor] = true
	}
	if len(e.Remedies) == 0 {
		for _, step := range e.NextSteps {
			found[step.Actor] = true
		}
	}
	for _, actor := range []string{api.ActorUser, api.ActorAdmin, api.ActorNobody} {
		if found[actor] {
			return actor
		}
	}
	return ""
}
