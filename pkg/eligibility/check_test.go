// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import "testing"

// TestSteps holds the list against the numbers of the checks: reasons are compared
// by number, and made in the order of the list.
func TestSteps(t *testing.T) {
	steps := Steps()
	if len(steps) != int(Constraint)+1 {
		t.Errorf("%d steps for %d checks", len(steps), int(Constraint)+1)
	}
	for i, step := range steps {
		if step.Check != Check(i) || step.Name == "" || step.Label == "" || step.Scope == "" {
			t.Errorf("step %d is %+v", i, step)
		}
	}
}
