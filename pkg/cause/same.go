// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Same puts causes together that read the same, such as two templates that ask for equally many
// devices: text has them as one, with one number and one next step. They stay apart in the status,
// because each has the id of its object. The second result has the number of each cause's group,
// counted from 1.
func Same(causes []api.Cause) (groups [][]*api.Cause, numbers []int) {
	type text struct{ severity, message, step, mended string }
	known := map[text]int{}
	for i := range causes {
		c := &causes[i]
		t := text{severity: string(c.Severity), message: c.Message}
		if c.NextStep != nil {
			t.step = c.NextStep.Actor + c.NextStep.Text
		}
		if c.Mended != nil {
			t.mended = c.Mended.Message
		}
		number := known[t]
		if number == 0 {
			groups = append(groups, nil)
			number = len(groups)
			known[t] = number
		}
		groups[number-1] = append(groups[number-1], c)
		numbers = append(numbers, number)
	}
	return groups, numbers
}
