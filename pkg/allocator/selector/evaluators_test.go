// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// TestLend checks that an evaluator remembers what it was asked, for one user after the
// other but never for two at once. An evaluator that remembers very much is not kept.
func TestLend(t *testing.T) {
	evaluators := NewEvaluators(func() *Evaluator { return New(dracel.Features{}, false) })
	device := &resourceapi.Device{Name: "gpu-0"}
	ask := func(v *Evaluator) *Result {
		return v.Evaluate(t.Context(), v.Compile(`device.driver == "gpu.example.com"`), "gpu.example.com", device)
	}
	first, back := evaluators.Lend()
	result := ask(first)
	second, secondBack := evaluators.Lend()
	if first == second || ask(second) == result {
		t.Error("two have the same evaluator at once")
	}
	secondBack()
	back()
	again, back := evaluators.Lend()
	if ask(again) != result {
		t.Error("what was asked before is evaluated again")
	}
	for i := range maxExpressions + 1 {
		again.Compile(fmt.Sprintf(`device.driver == "driver-%d"`, i))
	}
	back()
	for range maxIdle {
		if v, _ := evaluators.Lend(); v == again {
			t.Error("an evaluator that remembers very much is kept")
		}
	}
}
