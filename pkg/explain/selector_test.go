// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// whyWaiting explains the claim that waits.
func whyWaiting(t *testing.T, snap *snapshot.Snapshot) *api.Explanation {
	t.Helper()
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ofDriver gives a slice to another driver, in a pool of its own.
func ofDriver(name string) func(*resourceapi.ResourceSlice) {
	return func(s *resourceapi.ResourceSlice) { s.Spec.Driver = name }
}

// costly returns a worst case that is also the only one: n loops of ten numbers.
func costly(n int) string {
	expression := "x0 > 0"
	for i := range n {
		expression = fmt.Sprintf("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(x%d, %s)", i, expression)
	}
	return expression
}

// TestSelectorMessages covers two drivers on a node: three devices with a model, one
// without, and a NIC.
func TestSelectorMessages(t *testing.T) {
	devices := []any{
		tc.Nodes("n1"),
		tc.Pool("n1", tc.Device("gpu-0", "model=A100", "memory:=40Gi", "vendor=nvidia"), tc.Device("gpu-1", "model=A100", "root=r1"), tc.Device("gpu-2", "model=H100")),
		tc.Pool("n1", tc.Device("nic-0"), tc.Device("nic-1")).Change(ofDriver("nic.example.com")),
		tc.ClassWhere("any"),
		tc.ClassWhere("typed", `device.attributes["gpu.example.com"].model.startsWith("A")`),
		tc.ClassWhere("misnamed", `device.driver == "gpu.exampel.com"`),
	}
	for _, test := range []struct {
		name, class, expression string
		verdict                 api.Verdict
		want                    []string
		unwanted                string
	}{
		{
			name: "another driver", class: "any", expression: `device.attributes["gpu.example.com"].model == "T4"`, verdict: api.Error,
			want: []string{
				"the selector fails on 2 of 5 devices of the class",
				"no such key: model; attribute model (domain gpu.example.com) exists on 3 of 5 devices of all pools, not on 2 of driver nic.example.com, which class any does not exclude",
			},
		},
		{
			name: "the class itself", class: "typed", expression: `true`, verdict: api.Error,
			want: []string{"the class selector fails on 2 of 5 devices, and a CEL error on one device", "not on 2 of driver nic.example.com, which class typed does not exclude"},
		},
		{
			name: "not on all of the driver", class: tc.ClassGPU, expression: `device.attributes["gpu.example.com"].root == "r2"`, verdict: api.Error,
			want:     []string{"attribute root (domain gpu.example.com) exists on 1 of 5 devices of all pools, not on 2 of driver gpu.example.com"},
			unwanted: "does not exclude",
		},
		{
			name: "a capacity", class: tc.ClassGPU, expression: `device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("80Gi"))`, verdict: api.Error,
			want: []string{"capacity memory (domain gpu.example.com) exists on 1 of 5 devices of all pools, not on 2 of driver gpu.example.com"},
		},
		{
			name: "a misnamed attribute", class: tc.ClassGPU, expression: `device.attributes["gpu.example.com"].modle == "A100"`, verdict: api.Error,
			want: []string{"attribute modle (domain gpu.example.com) exists on none of the 5 devices of all pools; did you mean model?"},
		},
		{
			name: "a misnamed domain", class: tc.ClassGPU, expression: `device.attributes["gpu.exampel.com"].model == "A100"`, verdict: api.Error,
			want: []string{"exists on none of the 5 devices of all pools, and nothing else of that domain does; did you mean gpu.example.com?"},
		},
		{
			name: "a missing attribute behind one that is optional", class: tc.ClassGPU, expression: `device.attributes["gpu.example.com"].?root.orValue(device.attributes["gpu.example.com"].other) == "x"`, verdict: api.Error,
			want:     []string{"no such key: other; attribute other (domain gpu.example.com) exists on none of the 5 devices"},
			unwanted: "attribute root",
		},
		{
			name: "a key of a map in the expression", class: tc.ClassGPU, expression: `{"B200": 1}[device.attributes["gpu.example.com"].model] > 0 && device.attributes["gpu.example.com"].?root.orValue("") == ""`, verdict: api.Error,
			want:     []string{"no such key: A100"},
			unwanted: "attribute root",
		},
		{
			name: "a capacity as an attribute", class: tc.ClassGPU, expression: `device.attributes["gpu.example.com"].memory == "40Gi"`, verdict: api.Error,
			want: []string{`did you mean device.capacity["gpu.example.com"].memory?`},
		},
		{
			name: "a misnamed driver in the class", class: "misnamed", expression: `true`, verdict: api.DoesNotFit,
			want: []string{"o node has devices of class misnamed, which request r needs; driver gpu.exampel.com publishes nothing: there is no ResourceSlice of it in the cluster; did you mean gpu.example.com?"},
		},
		{
			name: "a misnamed driver in the request", class: "any", expression: `device.driver == "nik.example.com"`, verdict: api.DoesNotFit,
			want: []string{"no device is of driver nik.example.com; did you mean nic.example.com?"},
		},
		{
			name: "a misnamed value", class: tc.ClassGPU, expression: `"vendor" in device.attributes["gpu.example.com"] && device.attributes["gpu.example.com"].vendor == "nvdiia"`, verdict: api.DoesNotFit,
			want: []string{`no device has vendor "nvdiia"; did you mean "nvidia"?`},
		},
		{
			name: "a value in lower case", class: tc.ClassGPU, expression: `device.attributes["gpu.example.com"].model == "a100"`, verdict: api.DoesNotFit,
			want: []string{`no device has model "a100"; did you mean "A100"?`},
		},
		{
			name: "another product", class: tc.ClassGPU, expression: `device.attributes["gpu.example.com"].model == "B100"`, verdict: api.DoesNotFit,
			want: []string{`model is "A100" on 2 devices, "H100" on 1; must be "B100"; no device has model "B100"`}, unwanted: "did you mean",
		},
		{
			name: "a value that others have", class: tc.ClassGPU, expression: `device.attributes["gpu.example.com"].model == "H100" && "root" in device.attributes["gpu.example.com"]`, verdict: api.DoesNotFit,
			want: []string{`model is "A100"`}, unwanted: "did you mean",
		},
		{
			name: "a misnamed attribute that is asked for", class: tc.ClassGPU, expression: `"modle" in device.attributes["gpu.example.com"]`, verdict: api.DoesNotFit,
			want: []string{"attribute modle (domain gpu.example.com) exists on none of the 5 devices of all pools; did you mean model?"},
		},
		{
			name: "too much cost", class: tc.ClassGPU, expression: costly(6), verdict: api.Error,
			want: []string{"it costs more than the limit of 1,000,000 and is broken off; in the worst case it costs 6,555,551"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := whyWaiting(t, tc.Cluster(append(slices.Clone(devices), tc.Claim(waiting, tc.GPUs("r", 3, test.expression).OfClass(test.class)))...))
			if e.Verdict != test.verdict {
				t.Errorf("verdict %s, want %s", e.Verdict, test.verdict)
			}
			for _, want := range test.want {
				if !strings.Contains(e.Summary+everything(e), want) {
					t.Errorf("nobody says %q: %s\n%s", want, e.Summary, everything(e))
				}
			}
			if test.unwanted != "" && strings.Contains(asJSON(e), test.unwanted) {
				t.Errorf("somebody says %q: %s", test.unwanted, asJSON(e))
			}
		})
	}
}

// TestSelectorTraces follows devices through the selectors of a class and a
// request.
func TestSelectorTraces(t *testing.T) {
	e := whyWaiting(t, tc.Cluster(tc.Nodes("n1"),
		tc.Pool("n1", tc.Device("gpu-0", "model=A"), tc.Device("gpu-1", "model=B"), tc.Device("gpu-2")),
		tc.Pool("n1", tc.Device("nic-0")).Change(ofDriver("nic.example.com")),
		tc.Serving("user", "n1", "gpu-2"),
		tc.Claim(waiting, tc.GPUs("r", 3, `device.attributes["gpu.example.com"].model == "A"`, `true`)),
	))
	traces := e.Claims[0].Requests[0].Selectors
	if len(traces) != 3 {
		t.Fatalf("got %s, want three selectors", asJSON(traces))
	}
	for i, want := range []struct{ source, object, path, outcomes string }{
		{"class", "DeviceClass/gpu", "spec.selectors[0].cel.expression", "3/1/0/0"},
		{"request", "ResourceClaim/ml/" + waiting, "spec.devices.requests[0].exactly.selectors[0].cel.expression", "1/1/1/1"},
		{"request", "ResourceClaim/ml/" + waiting, "spec.devices.requests[0].exactly.selectors[1].cel.expression", "1/0/0/3"},
	} {
		got := traces[i]
		if got.Source != want.source || got.Object.String() != want.object || got.Path != want.path || fmt.Sprintf("%d/%d/%d/%d", got.Outcomes.True, got.Outcomes.False, got.Outcomes.Fails, got.Outcomes.NotEvaluated) != want.outcomes {
			t.Errorf("selector %d is %s, want %+v", i, asJSON(got), want)
		}
		if got.CostLimit != resourceapi.CELSelectorExpressionMaxCost || got.Cost > 10 || i < 2 && got.Cost == 0 {
			t.Errorf("selector %d costs %d of %d", i, got.Cost, got.CostLimit)
		}
	}
	if !strings.HasPrefix(traces[1].Error, "no such key: model") {
		t.Errorf("error %q", traces[1].Error)
	}
}

// TestCostOfNewClaims warns about what the API server will not take, before it is
// created.
func TestCostOfNewClaims(t *testing.T) {
	parts := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("gpu-0")), tc.Claim(waiting, tc.GPUs("r", 1, "device.driver != 'x' || "+costly(6)))}
	stored := whyWaiting(t, tc.Cluster(parts...))
	snap := tc.Cluster(parts...)
	snap.Claims[0].UID = ""
	fresh := whyWaiting(t, snap)
	for _, test := range []struct {
		name string
		e    *api.Explanation
		want bool
	}{{"stored", stored, false}, {"new", fresh, true}} {
		if test.e.Verdict != api.Fits {
			t.Errorf("%s: verdict %s, want Fits: the expensive part is not reached", test.name, test.e.Verdict)
		}
		warned := strings.Contains(asJSON(test.e.NextSteps), "the API server refuses it in new objects")
		if warned != test.want {
			t.Errorf("%s: next steps %s, want a warning: %v", test.name, asJSON(test.e.NextSteps), test.want)
		}
		if notes := test.e.Claims[0].Requests[0].Selectors[1].Notes; len(notes) != 1 || !strings.Contains(notes[0], "the limit is 1,000,000") {
			t.Errorf("%s: notes %q", test.name, notes)
		}
	}
}

// TestSelectorOfNewerRelease does not say that a claim does not fit, or that a release rejects a
// selector, if only this program does not know it.
func TestSelectorOfNewerRelease(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("r", 1, "variables.model == 'A100'")))
	snap.ServerVersion = "v1.38.0"
	e := whyWaiting(t, snap)
	if e.Verdict != api.Undetermined || !strings.Contains(e.Summary, "Kubernetes v1.38.0 may compile it: this program knows 1.37 and older") || strings.Contains(e.Summary, "rejects") {
		t.Errorf("%s: %s", e.Verdict, e.Summary)
	}
	if len(e.NextSteps) == 0 || e.NextSteps[0].Text != "install a newer version of kubectl-dra" {
		t.Errorf("next steps %s", asJSON(e.NextSteps))
	}
}
