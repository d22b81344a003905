// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility_test

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// traceLines writes the parts of a trace in short: the outcomes as
// true/false/fails/not reached, then the values.
func traceLines(parts []api.SelectorPart, indent string) []string {
	var lines []string
	for i := range parts {
		p := &parts[i]
		line := fmt.Sprintf("%s%s: %s", indent, strings.ReplaceAll(p.Expression, `device.attributes["gpu.example.com"]`, "x"), outcomesText(p.Outcomes))
		for _, value := range p.Values {
			line += fmt.Sprintf("; %s %d: %s", value.Outcome, value.Count, value.Found)
		}
		if p.MoreValues > 0 {
			line += fmt.Sprintf("; %d more", p.MoreValues)
		}
		lines = append(lines, line)
		lines = append(lines, traceLines(p.Operands, indent+"  ")...)
	}
	return lines
}

func outcomesText(o api.SelectorOutcomes) string {
	return fmt.Sprintf("%d/%d/%d/%d", o.True, o.False, o.Fails, o.NotEvaluated)
}

// traceOf evaluates one selector on devices.
func traceOf(t *testing.T, expression string, list ...tc.DeviceWrapper) api.SelectorTrace {
	t.Helper()
	s := selector.New(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}, true)
	facts := cluster.New(tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", list...)))
	f := &eligibility.Funnel{Checks: &eligibility.Checks{
		Selectors: s, Catalog: eligibility.NewCatalog(facts, s),
		Request: &cluster.Request{Claim: &resourceapi.ResourceClaim{}, Selectors: tc.CELSelectors(expression)},
	}, Devices: facts.Pools.Devices()}
	return f.Traces(t.Context())[0]
}

func TestTraceOfEachForm(t *testing.T) {
	const x = `device.attributes["gpu.example.com"]`
	list := []tc.DeviceWrapper{
		tc.Device("d1", "model=A").WithInt("a", 1).WithInt("b", 1).WithBool("flag", true).WithInts("list", 1, 2),
		tc.Device("d2", "model=A").WithInt("a", 2).WithInt("b", 1).WithBool("flag", false).WithInts("list", 2, 3),
		tc.Device("d3", "model=B").WithInt("a", 3).WithBool("flag", false).WithInts("list"),
	}
	for _, test := range []struct {
		name, expression string
		want             []string
	}{
		{"a comparison", `x.model == "A"`, []string{
			`x.model == "A": 2/1/0/0; True 2: model is "A"; False 1: model is "B"`,
		}},
		{"and", `x.model == "A" && x.a == 1`, []string{
			`x.model == "A": 2/1/0/0; True 2: model is "A"; False 1: model is "B"`,
			`x.a == 1: 1/1/0/1; True 1: a is 1; False 1: a is 2`,
		}},
		{"or", `x.model == "B" || x.a == 1`, []string{
			`x.model == "B" || x.a == 1: 2/1/0/0`,
			`  x.model == "B": 1/2/0/0; False 2: model is "A"; True 1: model is "B"`,
			`  x.a == 1: 1/1/0/1; True 1: a is 1; False 1: a is 2`,
		}},
		{"or makes up for a failure", `x.b == 7 || x.model == "B"`, []string{
			`x.b == 7 || x.model == "B": 1/2/0/0`,
			`  x.b == 7: 0/2/1/0; False 2: b is 1; Fails 1: b is not set`,
			`  x.model == "B": 1/2/0/0; False 2: model is "A"; True 1: model is "B"`,
		}},
		{"and makes up for a failure", `x.b == 1 && x.model == "A"`, []string{
			`x.b == 1: 2/0/1/0; True 2: b is 1; Fails 1: b is not set`,
			`x.model == "A": 2/1/0/0; True 2: model is "A"; False 1: model is "B"`,
		}},
		{"not", `!(x.model == "A" && x.a == 1)`, []string{
			`!(x.model == "A" && x.a == 1): 2/1/0/0`,
			`  x.model == "A" && x.a == 1: 1/2/0/0`,
			`    x.model == "A": 2/1/0/0; True 2: model is "A"; False 1: model is "B"`,
			`    x.a == 1: 1/1/0/1; True 1: a is 1; False 1: a is 2`,
		}},
		{"a flag that must not be", `!x.flag`, []string{`!x.flag: 2/1/0/0; True 2: flag is false; False 1: flag is true`}},
		{"a condition", `x.flag ? x.a == 1 : x.b == 2`, []string{
			`x.flag ? (x.a == 1) : (x.b == 2): 1/1/1/0`,
			`  x.flag: 1/2/0/0; False 2: flag is false; True 1: flag is true`,
			`  x.a == 1: 1/0/0/2; True 1: a is 1`,
			`  x.b == 2: 0/1/1/1; False 1: b is 1; Fails 1: b is not set`,
		}},
		{"two attributes", `x.a == x.b`, []string{
			`x.a == x.b: 1/1/1/0; True 1: a is 1 and b is 1; False 1: a is 2 and b is 1; Fails 1: a is 3 and b is not set`,
		}},
		{"all", `x.list.all(v, v < 3)`, []string{
			`x.list.all(v, v < 3): 2/1/0/0; True 1: list is [1, 2]; False 1: list is [2, 3] and v is 3; True 1: list is []`,
		}},
		{"exists", `x.list.exists(v, v == 2)`, []string{
			`x.list.exists(v, v == 2): 2/1/0/0; True 1: list is [1, 2] and v is 2; True 1: list is [2, 3] and v is 2; False 1: list is []`,
		}},
		{"the names", `x.exists(name, name == "b")`, []string{
			`x.exists(name, name == "b"): 2/1/0/0; True 2: attributes of gpu.example.com are {a, b, flag, list, model} and name is "b"; False 1: attributes of gpu.example.com are {a, flag, list, model}`,
		}},
		{"a test", `has(x.b) && x.b == 1`, []string{
			`has(x.b): 2/1/0/0; True 2: b is 1; False 1: b is not set`,
			`x.b == 1: 2/0/0/1; True 2: b is 1`,
		}},
		{"bound names", `cel.bind(g, x, g.model == "A" && g.list.exists(g2, g2 == g.a))`, []string{
			`x.model == "A": 2/1/0/0; True 2: model is "A"; False 1: model is "B"`,
			`x.list.exists(g2, g2 == x.a): 2/0/0/1; True 1: list is [1, 2], a is 1 and g2 is 1; True 1: list is [2, 3], a is 2 and g2 is 2`,
		}},
		{"constants", `true || x.zzz`, []string{`true || x.zzz: 3/0/0/0`, `  true: 3/0/0/0`, `  x.zzz: 0/0/0/3`}},
		{"a wrong type", `x.model == "A" && x.a`, []string{
			`x.model == "A": 2/1/0/0; True 2: model is "A"; False 1: model is "B"`,
			`x.a: 0/0/2/1; Fails 1: a is 1; Fails 1: a is 2`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			trace := traceOf(t, strings.NewReplacer("x.", x+".", "x,", x+",").Replace(test.expression), list...)
			if got := traceLines(trace.Parts, ""); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if problem := compareParts(trace.Parts, len(list)); problem != "" {
				t.Error(problem)
			}
		})
	}
}

// TestTraceHasWhatSelectorsSee covers the stable implementation, which does not tell
// selectors that a device can be shared.
func TestTraceHasWhatSelectorsSee(t *testing.T) {
	const shared = "device.allowMultipleAllocations"
	for _, test := range []struct{ name, expression, want string }{
		{"a conjunct", "!" + shared, "!" + shared + ": 2/0/0/0; True 2: allowMultipleAllocations is false"},
		{"an operand", shared + " || !" + shared, shared + " || !" + shared + ": 2/0/0/0\n  " +
			shared + ": 0/2/0/0; False 2: allowMultipleAllocations is false\n  !" +
			shared + ": 2/0/0/0; True 2: allowMultipleAllocations is false"},
		{"one that is false", shared, shared + ": 0/2/0/0; False 2: allowMultipleAllocations is false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := testquestion.Of(t, tc.Snapshot(tc.Class(tc.ClassGPU, tc.Driver), tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Shareable(), tc.Device("b")), tc.Claim("c", tc.GPUs("gpu", 1, test.expression))), nil)
			if channel := q.Cluster.Gates.Features().Channel; channel != "stable" {
				t.Fatalf("the implementation is %s", channel)
			}
			if got := strings.Join(traceLines(q.Claims[0].Funnels[0][0].Traces(t.Context())[1].Parts, ""), "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// compareParts says what does not add up in a trace.
func compareParts(parts []api.SelectorPart, total int) string {
	for i := range parts {
		o, seen := parts[i].Outcomes, 0
		for _, value := range parts[i].Values {
			seen += value.Count
		}
		if sum := o.True + o.False + o.Fails + o.NotEvaluated; sum != total {
			return fmt.Sprintf("%s: counts %d devices of %d", parts[i].Expression, sum, total)
		}
		if seen > o.True+o.False+o.Fails || len(parts[i].Values) > eligibility.MaxValues {
			return fmt.Sprintf("%s: %d values of %+v", parts[i].Expression, seen, o)
		}
		if problem := compareParts(parts[i].Operands, total); problem != "" {
			return problem
		}
	}
	return ""
}

// TestManyValues bounds what a trace shows, and still counts all of it.
func TestManyValues(t *testing.T) {
	var list []tc.DeviceWrapper
	for i := range 30 {
		list = append(list, tc.Device(fmt.Sprintf("d%02d", i), "model="+fmt.Sprintf("m%d", i)).WithInt("a", int64(i%2)))
	}
	trace := traceOf(t, `device.attributes["gpu.example.com"].model != "m3" && device.attributes["gpu.example.com"].a == 1`, list...)
	if got := trace.Parts[0]; len(got.Values) != eligibility.MaxValues || got.MoreValues != 20 || outcomesText(got.Outcomes) != "29/1/0/0" {
		t.Errorf("got %+v", got)
	}
	if got := trace.Parts[1]; len(got.Values) != 2 || got.Values[0].Count != 15 || outcomesText(got.Outcomes) != "14/15/0/1" {
		t.Errorf("got %+v", got)
	}
}
