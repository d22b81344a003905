// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func TestActor(t *testing.T) {
	for name, test := range map[string]struct {
		remedies, steps []string
		want            string
	}{
		"nothing helps":          {nil, nil, ""},
		"the user comes first":   {[]string{api.ActorAdmin, api.ActorUser, api.ActorNobody}, nil, api.ActorUser},
		"remedies come first":    {[]string{api.ActorAdmin}, []string{api.ActorUser}, api.ActorAdmin},
		"only steps":             {nil, []string{api.ActorNobody, api.ActorAdmin}, api.ActorAdmin},
		"something to wait for":  {[]string{api.ActorNobody}, nil, api.ActorNobody},
		"an actor without a say": {[]string{"Somebody"}, nil, ""},
	} {
		e := &api.Explanation{}
		for _, actor := range test.remedies {
			e.Remedies = append(e.Remedies, api.Remedy{Actor: actor})
		}
		for _, actor := range test.steps {
			e.NextSteps = append(e.NextSteps, api.NextStep{Actor: actor})
		}
		if got := Actor(e); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
