// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

func attributeReading(name string) Reading {
	return Attribute(resourceapi.QualifiedName(name), driver)
}

func guarded(expression string, missing ...Reading) (string, bool) {
	v := New(listFeatures(), true)
	return v.Guard(v.Compile(expression), missing)
}

func TestGuard(t *testing.T) {
	a, b := attributeReading("a"), attributeReading("b")
	const x = `device.attributes["gpu.example.com"]`
	for _, test := range []struct{ name, expression, want string }{
		{"one comparison", x + `.a == 1`, `has(` + x + `.a) && ` + x + `.a == 1`},
		{"by index", x + `["a"] == 1`, `has(` + x + `.a) && ` + x + `["a"] == 1`},
		{"a capacity", `device.capacity["gpu.example.com"].a.isGreaterThan(quantity("1"))`, ``},
		{
			"a conjunction needs one test each", x + `.a == 1 && ` + x + `.b == 2 && ` + x + `.a != 5`,
			`has(` + x + `.a) && has(` + x + `.b) && ` + x + `.a == 1 && ` + x + `.b == 2 && ` + x + `.a != 5`,
		},
		{
			"a conjunct that is guarded already", `has(` + x + `.a) && ` + x + `.a == 1 && ` + x + `.b == 2`,
			`has(` + x + `.b) && has(` + x + `.a) && ` + x + `.a == 1 && ` + x + `.b == 2`,
		},
		{"a disjunction of the same value", x + `.a == 1 || ` + x + `.a == 2`, `has(` + x + `.a) && (` + x + `.a == 1 || ` + x + `.a == 2)`},
		{
			"a disjunction of different values", x + `.a == 1 || ` + x + `.b == 2`,
			`has(` + x + `.a) && ` + x + `.a == 1 || has(` + x + `.b) && ` + x + `.b == 2`,
		},
		{
			"a disjunction with something else", `device.driver == "y" || ` + x + `.a == 1`,
			`device.driver == "y" || has(` + x + `.a) && ` + x + `.a == 1`,
		},
		{"a negation", `!(` + x + `.a == 1)`, `has(` + x + `.a) && !(` + x + `.a == 1)`},
		{
			"a negated conjunction", `!(` + x + `.a == 1 && ` + x + `.b == 2)`,
			`has(` + x + `.a) && !(` + x + `.a == 1) || has(` + x + `.b) && !(` + x + `.b == 2)`,
		},
		{"a flag", x + `.a`, `has(` + x + `.a) && ` + x + `.a`},
		{"a negated flag", `!` + x + `.a`, `has(` + x + `.a) && !` + x + `.a`},
		{
			"a condition", x + `.a == 1 ? true : device.driver == "y"`,
			`has(` + x + `.a) && (` + x + `.a == 1 ? true : device.driver == "y")`,
		},
		{
			"branches", `device.driver == "y" ? ` + x + `.a == 1 : ` + x + `.b == 1`,
			`device.driver == "y" ? has(` + x + `.a) && ` + x + `.a == 1 : has(` + x + `.b) && ` + x + `.b == 1`,
		},
		{"a range", x + `.a.exists(v, v == 1)`, `has(` + x + `.a) && ` + x + `.a.exists(v, v == 1)`},
		{"a comment", x + `.a == 1 // one`, `has(` + x + `.a) && ` + x + `.a == 1`},
		{
			"a long disjunction stays in one line", x + `.a == 1 || device.driver == "somebody.example.com" || ` + x + `.b == 2`,
			`has(` + x + `.a) && ` + x + `.a == 1 || device.driver == "somebody.example.com" || has(` + x + `.b) && ` + x + `.b == 2`,
		},
		{
			"bound names", `cel.bind(g, ` + x + `, g.a == 1 && device.driver == "y")`,
			`has(` + x + `.a) && cel.bind(g, ` + x + `, g.a == 1 && device.driver == "y")`,
		},
		{
			"bound names in a disjunction", `cel.bind(g, ` + x + `, g.a == 1 || g.list.exists(v, v == g.c))`,
			`has(` + x + `.a) && ` + x + `.a == 1 || ` + x + `.list.exists(v, v == ` + x + `.c)`,
		},
		{"nothing to guard", `device.driver == "y"`, ``},
		{"optional", x + `.?a.orValue(1) == 1`, ``},
		{"in a loop", `[1, 2].exists(v, v == ` + x + `.a)`, ``},
		{"an error", x + `.a ==`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := guarded(test.expression, a, b)
			if got != test.want && ok || ok != (test.want != "") {
				t.Errorf("got  %q (%v)\nwant %q", got, ok, test.want)
			}
		})
	}
}

func TestGuardOfStrangeNames(t *testing.T) {
	expression := `device.attributes["gpu.example.com"]["in"] == 1`
	got, ok := guarded(expression, attributeReading("in"))
	if want := `"in" in device.attributes["gpu.example.com"] && ` + expression; got != want || !ok {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestGuardIsTheSameWithoutErrors holds guarded expressions against the originals.
func TestGuardIsTheSameWithoutErrors(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 300
	}
	counts := map[string]int{}
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		s := New(listFeatures(), true)
		sel := s.Compile(randomExpression(random, 3))
		if sel.Err != nil {
			t.Fatalf("%s: %v", sel.Expression, sel.Err)
		}
		list := make([]resourceapi.Device, 12)
		var missing []Reading
		failing := 0
		for i := range list {
			list[i] = randomDevice(random)
			result := s.Evaluate(t.Context(), sel, driver, &list[i])
			if result.Err == nil {
				continue
			}
			if !strings.Contains(result.Err.Error(), "no such key") {
				t.Fatalf("%s: %v", sel.Expression, result.Err)
			}
			failing++
			for _, r := range result.Detail(t.Context()).Missing {
				if !slices.Contains(missing, r) {
					missing = append(missing, r)
				}
			}
		}
		if failing == 0 {
			counts["never fails"]++
			continue
		}
		guarded, ok := s.Guard(sel, missing)
		if !ok {
			counts["not guarded"]++
			continue
		}
		counts["guarded"]++
		again := s.Compile(guarded)
		for i := range list {
			want, _, err := sel.compiled.DeviceMatches(t.Context(), celDevice(driver, &list[i]))
			got, _, gotErr := again.compiled.DeviceMatches(t.Context(), celDevice(driver, &list[i]))
			if gotErr != nil || got != (want && err == nil) {
				t.Fatalf("seed %d: %s\ngives %v, %v; guarded as\n%s\nit gives %v, %v for %s", seed, sel.Expression, want, err, guarded, got, gotErr, asJSON(list[i]))
			}
		}
	}
	t.Log(counts)
	if counts["guarded"] < cases/4 {
		t.Errorf("too few expressions were guarded: %v", counts)
	}
}
