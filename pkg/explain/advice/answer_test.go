// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice_test

import (
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
)

// TestGroupOrder asks again and again: groups that are equally near, and are described in
// the same words, are always in the same order.
func TestGroupOrder(t *testing.T) {
	answer := func(code api.Code) advice.Answer {
		return advice.Answer{Verdict: api.DoesNotFit, Code: code, Message: "no devices of class nic", Missing: 1}
	}
	for range 100 {
		groups := advice.Group(map[advice.Answer][]string{answer(api.NodeNotReachable): {"a"}, answer(api.ClassSelectorFalse): {"b"}})
		if len(groups) != 2 || groups[0].Code != api.ClassSelectorFalse {
			t.Fatalf("got %+v", groups)
		}
	}
}
