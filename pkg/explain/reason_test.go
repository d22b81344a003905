// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"errors"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// TestReason takes what an answer says, or in a line why there is none.
func TestReason(t *testing.T) {
	answer := &api.Explanation{
		Verdict: api.DoesNotFit, Code: api.DeviceAllocated, Stage: api.StageAllocation, Summary: "s", Outlook: &api.Outlook{Fits: api.Never},
		NextSteps: []api.NextStep{{Actor: api.ActorAdmin}},
	}
	want := api.StuckReason{Verdict: api.DoesNotFit, Code: api.DeviceAllocated, Stage: api.StageAllocation, Summary: "s", Outlook: api.Never, Actor: api.ActorAdmin}
	if got := explain.Reason(answer, nil); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want = api.StuckReason{Verdict: api.Undetermined, Summary: "no; nor this"}
	if got := explain.Reason(nil, errors.New("no\nnor this")); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
