// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// TestImpactSaysReasonsOnce puts pods with the same reason together.
func TestImpactSaysReasonsOnce(t *testing.T) {
	impact := &api.Impact{Change: "remove driver gpu.example.com", Counts: api.ImpactCounts{DevicesLost: 4, NoPlace: 3, Placed: 1}}
	for name, reason := range map[string]string{"a": "No GPU.", "b": "No NIC.", "c": "No GPU.", "d": ""} {
		pod := api.ImpactPod{Namespace: "ml", Name: name, Owner: api.Ref("Job", "ml", "j"), Effect: api.EffectDevicesLost, Outcome: api.OutcomeNoPlace, Reason: reason}
		if reason == "" {
			pod.Outcome, pod.Placement = api.OutcomePlaced, &api.Placement{Node: "n1"}
		}
		impact.Pods = append(impact.Pods, pod)
	}
	slices.SortFunc(impact.Pods, func(a, b api.ImpactPod) int { return strings.Compare(a.Name, b.Name) })
	var out strings.Builder
	if err := render.Impact(&out, impact, time.Time{}, render.Options{Width: 100}); err != nil {
		t.Fatal(err)
	}
	want := `
  ml/a  job/j  no place
  ml/c  job/j  no place
      No GPU.
  ml/b  job/j  no place. No NIC.
  ml/d  job/j  -> n1
`
	if !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
