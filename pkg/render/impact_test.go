// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"fmt"
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

// TestImpactFitsTerminal draws groups of pods by owner and answer where the terminal has no room for
// each pod, and counts what it leaves out.
func TestImpactFitsTerminal(t *testing.T) {
	impact := &api.Impact{Change: "drain node n1", Counts: api.ImpactCounts{Evicted: 24, NoPlace: 8, Placed: 8, NotRecreated: 8}}
	for k := range 24 {
		pod := api.ImpactPod{Namespace: "ml", Name: fmt.Sprintf("pod-%02d", k), Effect: api.EffectEvicted, Node: "n1"}
		switch k % 3 {
		case 0:
			pod.Owner, pod.Outcome = api.Ref("Job", "ml", "train"), api.OutcomePlaced
			pod.Placement = &api.Placement{Node: fmt.Sprintf("n%d", 2+k/3)}
		case 1:
			pod.Owner, pod.Outcome = api.Ref("Job", "ml", "train"), api.OutcomeNoPlace
			pod.Reason, pod.UnfitNow = fmt.Sprintf("Node n%d: 0 of 8 devices available (8 allocated).", k), k == 1
		default:
			pod.Outcome = api.OutcomeNotRecreated
			pod.Placement = &api.Placement{Node: "n2"}
		}
		impact.Pods = append(impact.Pods, pod)
	}
	impact.Budgets = []api.ImpactBudget{{Namespace: "ml", Name: "train", Pods: []string{"pod-00"}, Effect: api.BudgetBlocks}}
	impact.Steps = []api.NextStep{{Text: "evict the pods", Commands: []string{"kubectl drain n1"}}}
	impact.Notes = []string{"A note."}
	draw := func(opts render.Options) string {
		var out strings.Builder
		if err := render.Impact(&out, impact, time.Time{}, opts); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	small := draw(render.Options{Width: 80, Height: 24})
	for _, want := range []string{
		`Drain node n1: 24 pods evicted: 8 find no place (1 even without this change), 8
  not created again (8 would fit elsewhere), 8 fit elsewhere; blocked by
  PodDisruptionBudget ml/train
`,
		`
Evicted (-o wide shows each pod)
  7 pods     ml/job/train  no place. Node n4: 0 of 8 devices available (8
                           allocated). And 6 other reasons.
  ml/pod-01  job/train     no place, even without this change. Node n1: 0 of 8
                           devices available (8 allocated).
  8 pods     bare pods     not created again; others like them fit on n2
  8 pods     ml/job/train  -> n2, n3 and 6 more
`,
		"kubectl drain n1",
	} {
		if !strings.Contains(small, want) {
			t.Errorf("got\n%s\nwant\n%s", small, want)
		}
	}
	if lines := strings.Count(small, "\n"); lines > 23 {
		t.Errorf("%d lines on a terminal of 24\n%s", lines, small)
	}
	if tiny := draw(render.Options{Width: 80, Height: 14}); !strings.Contains(tiny, "… 17 more pods") || !strings.Contains(tiny, "… 1 note (-o wide shows all)") {
		t.Errorf("what is left out is not counted\n%s", tiny)
	}
	for _, opts := range []render.Options{{Width: 80, Height: 24, Wide: true}, {}, {Width: 80, Height: 60}} {
		if whole := draw(opts); strings.Count(whole, "ml/pod-") != 24 || strings.Contains(whole, "-o wide shows each") {
			t.Errorf("with %+v, not every pod is shown\n%s", opts, whole)
		}
	}
}

// TestImpactOfDriverFits draws a drain that takes a driver away on a terminal of 24 lines, and says
// with -o wide what becomes of devices.
func TestImpactOfDriverFits(t *testing.T) {
	impact := &api.Impact{Change: "drain node gpu-04", Counts: api.ImpactCounts{Evicted: 5, NoPlace: 1, NotRecreated: 4}, Assumptions: []string{"A.", "B.", "C."}}
	impact.Pods = []api.ImpactPod{{Namespace: "gpu-driver", Name: "gpu-plugin-7d9f4c6b58-x2kqp", Drivers: []string{"gpu.example.com"}, Effect: api.EffectEvicted, Node: "gpu-04", Outcome: api.OutcomeNoPlace, Reason: "No node is suitable for the pod."}}
	driver := api.ImpactDriver{Node: "gpu-04", Drivers: []string{"gpu.example.com"}, Effect: api.DriverLeaves}
	for k := range 4 {
		name := fmt.Sprintf("sweep-%d", k)
		impact.Pods = append(impact.Pods, api.ImpactPod{
			Namespace: "research", Name: name, Effect: api.EffectEvicted, Node: "gpu-04", Outcome: api.OutcomeNotRecreated,
			Placement: &api.Placement{Node: fmt.Sprintf("gpu-%02d", k)}, Devices: []string{"gpu.example.com/gpu-04/gpu-0", "gpu.example.com/gpu-04/gpu-1"},
		})
		driver.Running = append(driver.Running, api.Ref(api.KindPod, "research", name))
	}
	impact.Drivers = []api.ImpactDriver{driver}
	for range 4 {
		impact.Steps = append(impact.Steps, api.NextStep{Text: "do it", Commands: []string{"kubectl"}})
	}
	var small, wide strings.Builder
	err := render.Impact(&small, impact, time.Time{}, render.Options{Width: 80, Height: 24})
	impact.Pods = append(impact.Pods, api.ImpactPod{Namespace: "research", Name: "lost", Effect: api.EffectDevicesLost, Outcome: api.OutcomeNoPlace, Devices: []string{"gpu.example.com/gpu-04/gpu-2"}})
	if err := errors.Join(err, render.Impact(&wide, impact, time.Time{}, render.Options{Width: 120, Wide: true})); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(small.String(), "\n"); lines > 23 || !strings.Contains(small.String(), "  1 pod   driver gpu.example.com  no place. No node is suitable for the pod.\n") || !strings.Contains(small.String(), "… 3 assumptions (-o wide shows all)") {
		t.Errorf("%d lines\n%s", lines, small.String())
	}
	for _, want := range []string{"      releases gpu.example.com/gpu-04/gpu-0, gpu.example.com/gpu-04/gpu-1\n", "      loses gpu.example.com/gpu-04/gpu-2\n"} {
		if !strings.Contains(wide.String(), want) {
			t.Errorf("no %q in\n%s", want, wide.String())
		}
	}
}

// TestImpactDrivers says what each effect on a driver means for pods, and names fewer nodes
// on a small terminal.
func TestImpactDrivers(t *testing.T) {
	for effect, want := range map[api.DriverEffect]string{
		api.DriverLeaves:       "\nThese stay in Terminating until the driver is back\n  n0 ",
		api.DriverUnregistered: "Without the driver, though its new pod runs\n  kubelets before 1.33 unregister it when the old pod ends: pods that run go on; pods that end stay in Terminating",
		api.DriverAway:         "Without the driver while its pod is replaced (maxUnavailable 2)\n  pods that run go on; pods that end stay in Terminating, and pods that start wait, until it is back",
		api.DriverOverlaps:     "The new pod is ready before the old one ends (maxSurge 3)\n  pods can start and end all the time\n",
		api.DriverStays:        "The pods of the driver stay until somebody deletes them (OnDelete)\n  then pods that run go on;",
	} {
		impact := &api.Impact{Change: "upgrade driver d", Update: &api.ImpactUpdate{MaxUnavailable: 2, MaxSurge: 3}}
		for k := range 40 {
			impact.Drivers = append(impact.Drivers, api.ImpactDriver{Node: fmt.Sprintf("n%d", k), Effect: effect, Running: []api.ObjectRef{api.Ref(api.KindPod, "ml", "a")}, Starting: []api.ObjectRef{api.Ref(api.KindPod, "ml", "b")}, Ending: []api.ObjectRef{api.Ref(api.KindPod, "ml", "c")}})
		}
		impact.Drivers = append(impact.Drivers, api.ImpactDriver{Node: "idle", Effect: effect})
		draw := func(opts render.Options) string {
			var out strings.Builder
			if err := render.Impact(&out, impact, time.Time{}, opts); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		const row = "  n0   3 pods  ml/a, ml/b, ml/c; 1 not started; 1 in Terminating\n"
		whole := draw(render.Options{Width: 200})
		if !strings.Contains(whole, want) || !strings.Contains(whole, row) || !strings.Contains(whole, "  n39  ") || !strings.Contains(whole, "  no such pod on idle\n") {
			t.Errorf("%s: got\n%s", effect, whole)
		}
		small := draw(render.Options{Width: 80, Height: 24})
		if lines := strings.Count(small, "\n"); lines >= 24 || !strings.Contains(small, "more nodes with such pods (-o wide shows each)") {
			t.Errorf("%s: %d lines\n%s", effect, lines, small)
		}
	}
}
