// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

// listFeatures has everything enabled that changes what a selector can say.
func listFeatures() dracel.Features {
	return dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
}

func attributeReading(name string) reading {
	return reading{kind: "attributes", domain: driver, name: name}
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
			got, ok := newSelectors(listFeatures(), "experimental").guard(test.expression, []reading{a, b})
			if got != test.want && ok || ok != (test.want != "") {
				t.Errorf("got  %q (%v)\nwant %q", got, ok, test.want)
			}
		})
	}
}

func TestGuardOfStrangeNames(t *testing.T) {
	expression := `device.attributes["gpu.example.com"]["in"] == 1`
	got, ok := newSelectors(listFeatures(), "experimental").guard(expression, []reading{attributeReading("in")})
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
		s := newSelectors(listFeatures(), "experimental")
		sel := s.compile(randomExpression(random, 3))
		if sel.compiled.Error != nil {
			t.Fatalf("%s: %v", sel.expression, sel.compiled.Error)
		}
		list := make([]resourceapi.Device, 12)
		var missing []reading
		failing := 0
		for i := range list {
			list[i] = randomDevice(random)
			result := s.evaluate(t.Context(), sel, driver, &list[i])
			if result.err == nil {
				continue
			}
			if !strings.Contains(result.err.Error(), "no such key") {
				t.Fatalf("%s: %v", sel.expression, result.err)
			}
			failing++
			for _, r := range result.missing {
				if !slices.Contains(missing, r) {
					missing = append(missing, r)
				}
			}
		}
		if failing == 0 {
			counts["never fails"]++
			continue
		}
		guarded, ok := s.guard(sel.expression, missing)
		if !ok {
			counts["not guarded"]++
			continue
		}
		counts["guarded"]++
		again := s.compile(guarded)
		for i := range list {
			want, _, err := sel.compiled.DeviceMatches(t.Context(), celDevice(driver, &list[i]))
			got, _, gotErr := again.compiled.DeviceMatches(t.Context(), celDevice(driver, &list[i]))
			if gotErr != nil || got != (want && err == nil) {
				t.Fatalf("seed %d: %s\ngives %v, %v; guarded as\n%s\nit gives %v, %v for %s", seed, sel.expression, want, err, guarded, got, gotErr, asJSON(list[i]))
			}
		}
	}
	t.Log(counts)
	if counts["guarded"] < cases/4 {
		t.Errorf("too few expressions were guarded: %v", counts)
	}
}

// randomExpression makes a boolean expression that reads the values that
// randomDevice makes, and fails only if one of them is missing.
func randomExpression(random *rand.Rand, depth int) string {
	sub := func() string { return randomExpression(random, depth-1) }
	if depth > 0 {
		switch random.IntN(8) {
		case 0, 1:
			return fmt.Sprintf("(%s) && (%s)", sub(), sub())
		case 2:
			return fmt.Sprintf("(%s) || (%s)", sub(), sub())
		case 3:
			return fmt.Sprintf("!(%s)", sub())
		case 4:
			return fmt.Sprintf("(%s ? %s : %s)", parenthesized(sub(), bindsTernary, bindsTight), parenthesized(sub(), bindsTernary, bindsTight), sub())
		}
	}
	return randomAtom(random)
}

func randomAtom(random *rand.Rand) string {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	attribute := func(name string) string {
		domain := pick(driver, driver, driver, "other.example.com")
		switch random.IntN(4) {
		case 0:
			return fmt.Sprintf("device.attributes[%q][%q]", domain, name)
		default:
			return fmt.Sprintf("device.attributes[%q].%s", domain, name)
		}
	}
	comparison := pick("==", "!=", "<", ">=")
	number := fmt.Sprint(random.IntN(3))
	switch random.IntN(12) {
	case 0:
		return fmt.Sprintf("device.driver %s %q", pick("==", "!="), pick(driver, "other"))
	case 1:
		return fmt.Sprintf("%s %s %q", attribute("model"), pick("==", "!="), pick("A", "B"))
	case 2, 3:
		return fmt.Sprintf("%s %s %s", attribute(pick("a", "b")), comparison, number)
	case 4:
		return fmt.Sprintf("%s %s %s", attribute("a"), comparison, attribute("b"))
	case 5:
		return attribute("flag")
	case 6:
		return fmt.Sprintf("has(device.attributes[%q].%s)", driver, pick("a", "b", "flag"))
	case 7:
		return fmt.Sprintf("%q in device.attributes[%q]", pick("a", "b"), driver)
	case 8:
		return fmt.Sprintf("device.capacity[%q].memory.compareTo(quantity(%q)) %s 0", driver, pick("1Gi", "2Gi"), comparison)
	case 9:
		return fmt.Sprintf("%s.%s(v, v %s %s)", attribute("list"), pick("exists", "all"), comparison, number)
	case 10:
		return fmt.Sprintf("device.attributes[%q].?%s.orValue(%s) %s %s", driver, pick("a", "b"), number, comparison, number)
	default:
		return fmt.Sprintf("[0, 1].exists(v, v %s %s)", comparison, attribute("b"))
	}
}

// randomDevice has some of the values that random expressions read.
func randomDevice(random *rand.Rand) resourceapi.Device {
	maybe := func() bool { return random.IntN(3) > 0 }
	d := device("gpu-0")
	set := func(name string, value resourceapi.DeviceAttribute) {
		if maybe() {
			d.Attributes[resourceapi.QualifiedName(name)] = value
		}
	}
	number := func() *int64 { return ptr.To(int64(random.IntN(3))) }
	set("model", resourceapi.DeviceAttribute{StringValue: ptr.To([]string{"A", "B"}[random.IntN(2)])})
	set("a", resourceapi.DeviceAttribute{IntValue: number()})
	set(driver+"/b", resourceapi.DeviceAttribute{IntValue: number()})
	set("other.example.com/a", resourceapi.DeviceAttribute{IntValue: number()})
	set("flag", resourceapi.DeviceAttribute{BoolValue: ptr.To(random.IntN(2) == 0)})
	set("list", resourceapi.DeviceAttribute{IntValues: []int64{*number(), *number()}})
	if maybe() {
		d.Capacity["memory"] = resourceapi.DeviceCapacity{Value: resource.MustParse([]string{"1Gi", "2Gi", "4Gi"}[random.IntN(3)])}
	}
	return d
}
