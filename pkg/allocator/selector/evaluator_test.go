// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"errors"
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

// TestEqualDevicesShareResults counts the evaluations that devices cost.
func TestEqualDevicesShareResults(t *testing.T) {
	list := []resourceapi.Device{
		device("d0", with("model", text("A")), with("uuid", text("u0"))),
		device("d1", with("model", text("A")), with("uuid", text("u1")), withMemory("1Gi")),
		device("d2", with(driver+"/model", text("A"))),
		device("d3", with("model", text("B"))),
		device("d4", with("other.example.com/model", text("A"))),
		device("d5"),
	}
	for _, test := range []struct {
		name, expression string
		want             []int
	}{
		{"one value", `device.attributes["gpu.example.com"].model == "A"`, []int{0, 0, 0, 3, 4, 4}},
		{"a test", `has(device.attributes["gpu.example.com"].model)`, []int{0, 0, 0, 3, 4, 4}},
		{"an optional value", `device.attributes["gpu.example.com"].?uuid.orValue("") == "u1"`, []int{0, 1, 2, 2, 2, 2}},
		{"the driver", `device.driver == "gpu.example.com"`, []int{0, 0, 0, 0, 0, 0}},
		{"a domain", `"gpu.example.com" in device.attributes`, []int{0, 0, 0, 0, 4, 4}},
		{"all of a domain", `device.attributes["gpu.example.com"].exists(k, k == "uuid")`, []int{0, 1, 2, 3, 4, 4}},
		{"everything", `device.attributes.exists(d, d == "other.example.com")`, []int{0, 1, 2, 3, 4, 5}},
		{"a capacity", `device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Mi"))`, []int{0, 1, 0, 0, 0, 0}},
		{"no value", `1 < 2`, []int{0, 0, 0, 0, 0, 0}},
		{"the whole device", `[device].exists(d, d.driver == "x")`, []int{0, 1, 2, 3, 4, 5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := New(listFeatures(), true)
			sel := v.Compile(test.expression)
			if sel.Err != nil {
				t.Fatal(sel.Err)
			}
			var results []*Result
			for i := range list {
				results = append(results, v.Evaluate(t.Context(), sel, driver, &list[i]))
			}
			for i, result := range results {
				if at := slices.Index(results, result); at != test.want[i] {
					t.Errorf("device %d has the result of device %d, want that of %d", i, at, test.want[i])
				}
				if again := v.Evaluate(t.Context(), sel, driver, &list[i]); again != result {
					t.Errorf("device %d is evaluated again", i)
				}
			}
		})
	}
}

// TestOddDevices covers an attribute that CEL refuses, read or not: they never share the
// result of others.
func TestOddDevices(t *testing.T) {
	v := New(listFeatures(), true)
	sel := v.Compile(`device.attributes["gpu.example.com"].model == "A"`)
	good := device("good", with("model", text("A")))
	for name, odd := range map[string]resourceapi.DeviceAttribute{
		"no value":                  {},
		"a version that is none":    {VersionValue: ptr.To("one")},
		"a list of such, partially": {VersionValues: []string{"1.0.0", "two"}},
	} {
		d := device(name, with("model", text("A")), with("odd", odd))
		if !v.Odd(&d) || v.Odd(&good) {
			t.Errorf("%s: odd %v, and a good one %v", name, v.Odd(&d), v.Odd(&good))
		}
		if result := v.Evaluate(t.Context(), sel, driver, &good); !result.Matches || result.Err != nil {
			t.Errorf("the good one gives %v, %v", result.Matches, result.Err)
		}
		if result := v.Evaluate(t.Context(), sel, driver, &d); result.Matches || result.Err == nil {
			t.Errorf("%s gives %v, %v, want an error", name, result.Matches, result.Err)
		}
	}
}

// TestSameForAll expects true only where no device can have another result than the others.
func TestSameForAll(t *testing.T) {
	model := func(name string) resourceapi.Device { return device(name, with("model", text(name))) }
	odd := device("odd", with("odd", resourceapi.DeviceAttribute{VersionValue: ptr.To("one")}))
	for name, c := range map[string]struct {
		expression string
		devices    []resourceapi.Device
		want       bool
	}{
		"reads the driver":      {`device.driver == "gpu.example.com"`, []resourceapi.Device{model("A"), model("B")}, true},
		"reads nothing":         {`true`, []resourceapi.Device{model("A"), model("B")}, true},
		"reads an attribute":    {`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "A"`, []resourceapi.Device{model("A"), model("B")}, false},
		"reads what is shared":  {`device.allowMultipleAllocations`, []resourceapi.Device{model("A"), model("B")}, false},
		"fails for an odd one":  {`device.driver == "gpu.example.com"`, []resourceapi.Device{model("A"), odd}, false},
		"does not even compile": {`device.driver ==`, []resourceapi.Device{model("A"), model("B")}, false},
	} {
		v := New(listFeatures(), true)
		sel := v.Compile(c.expression)
		if got := v.SameForAll(sel, c.devices); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSharing hides from selectors that a device can be shared.
func TestSharing(t *testing.T) {
	shared := device("shared", func(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) })
	for _, told := range []bool{true, false} {
		v := New(listFeatures(), told)
		if result := v.Evaluate(t.Context(), v.Compile(`device.allowMultipleAllocations`), driver, &shared); result.Matches != told {
			t.Errorf("matches %v, want %v", result.Matches, told)
		}
	}
	if !*shared.AllowMultipleAllocations {
		t.Error("the device was changed")
	}
}

func TestDetail(t *testing.T) {
	const x = `device.attributes["gpu.example.com"]`
	d := device("d", with("model", text("A")), with("a", number(1)))
	for _, test := range []struct{ name, expression, failed, found, missing string }{
		{"it holds", x + `.model == "A"`, "", "", ""},
		{"the second part is false", x + `.model == "A" && ` + x + `.a > 1`, x + ".a > 1", "a is 1", ""},
		{"the first decides", x + `.model == "B" && ` + x + `.b > 1`, x + `.model == "B"`, `model is "A"`, ""},
		{"a value is missing", x + `.a == 1 && ` + x + `.b > 1`, x + ".b > 1", "b is not set", x + ".b"},
		{"one side of || cannot be had", x + `.b == 1 || ` + x + `.model == "B"`, x + `.b == 1 || ` + x + `.model == "B"`, `b is not set; model is "A"`, x + ".b"},
		{"not compiled", x + `.a ==`, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := New(listFeatures(), true)
			detail := v.Evaluate(t.Context(), v.Compile(test.expression), driver, &d).Detail(t.Context())
			failed, missing := "", fmt.Sprint(detail.Missing)
			if detail.Failed != nil {
				failed = detail.Failed.Expression
			}
			if found := strings.Join(detail.Found, "; "); failed != test.failed || found != test.found || missing != "["+test.missing+"]" {
				t.Errorf("%q failed on %q, missing %s; want %q, %q, [%s]", failed, found, missing, test.failed, test.found, test.missing)
			}
		})
	}
}

// TestWatchedIsBounded asks about more different devices than are watched. It is
// still known of all that the expression holds.
func TestWatchedIsBounded(t *testing.T) {
	v := New(listFeatures(), true)
	sel := v.Compile(`device.attributes["gpu.example.com"].a >= 0 || false`)
	told := 0
	for i := range maxWatched + 10 {
		d := device("d", with("a", number(int64(i))))
		seen := v.Evaluate(t.Context(), sel, driver, &d).Detail(t.Context()).Seen
		if len(seen) != 1 || seen[0].Outcome != True {
			t.Fatalf("device %d: %+v", i, seen)
		}
		told += len(seen[0].Operands) / 2
	}
	if told != maxWatched {
		t.Errorf("%d were watched, want %d", told, maxWatched)
	}
}

// TestDerivedAttribute computes an attribute and fails for lack of one.
func TestDerivedAttribute(t *testing.T) {
	v := New(listFeatures(), true)
	d := device("d", with("a", number(1)))
	for _, test := range []struct{ expression, want, err string }{
		{`device.attributes["gpu.example.com"].a + 1`, "2", ""},
		{`device.attributes["gpu.example.com"].b + 1`, "", "evaluate derived attribute x/y: no such key: b"},
		{`device +`, "", "compile derived attribute x/y: "},
	} {
		value, err := v.DerivedAttribute(t.Context(), &resourceapi.DeviceDerivedAttribute{Name: "x/y", Expression: test.expression}, driver, &d)
		if test.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %s", test.expression, err, test.err)
			}
		} else if err != nil || value == nil || Literal(*value) != test.want {
			t.Errorf("%s: %v, %v, want %s", test.expression, value, err, test.want)
		}
	}
}

// TestAgreesWithUpstream compares the results of random selectors, and of their parts, with
// upstream's own evaluation.
func TestAgreesWithUpstream(t *testing.T) {
	cases := 500
	if testing.Short() {
		cases = 150
	}
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		list := make([]resourceapi.Device, 10)
		for i := range list {
			list[i] = randomDevice(random)
		}
		expression := randomExpression(random, 3)
		if problem := disagreement(t, expression, driver, list, true); problem != "" {
			t.Fatalf("seed %d: %s: %s", seed, expression, problem)
		}
	}
}

// disagreement describes where the results of a selector, and optionally of its parts,
// differ from upstream's.
func disagreement(t *testing.T, expression, driver string, list []resourceapi.Device, parts bool) string {
	t.Helper()
	v := New(listFeatures(), true)
	sel := v.Compile(expression)
	cache := dracel.NewCache(0, listFeatures())
	upstream := cache.GetOrCompile(expression)
	if (sel.Err == nil) != (upstream.Error == nil) {
		return fmt.Sprintf("compiles: %v, upstream: %v", sel.Err, upstream.Error)
	}
	if sel.Err != nil {
		return ""
	}
	for i := range list {
		result := v.Evaluate(t.Context(), sel, driver, &list[i])
		if endless := (*UnendingError)(nil); errors.As(result.Err, &endless) {
			// Upstream would not end.
			continue
		}
		if want := outcomeOf(t, upstream, driver, &list[i]); result.Outcome() != want {
			return fmt.Sprintf("%s (%v), upstream: %s on %s", result.Outcome(), result.Err, want, asJSON(list[i]))
		}
		seen := result.Detail(t.Context()).Seen
		if seen == nil && result.Err == nil && len(sel.Conjuncts) > 0 {
			return fmt.Sprintf("the parts do not explain %s on %s", result.Outcome(), asJSON(list[i]))
		}
		for c := range seen {
			if !parts {
				break
			}
			if problem := partDisagreement(t, cache, &sel.Conjuncts[c], &seen[c], driver, &list[i]); problem != "" {
				return fmt.Sprintf("%s on %s", problem, asJSON(list[i]))
			}
		}
	}
	return ""
}

// partDisagreement evaluates a part that was reached for itself.
func partDisagreement(t *testing.T, cache *dracel.Cache, part *Part, seen *Trace, driver string, d *resourceapi.Device) string {
	t.Helper()
	if seen.Outcome != NotEvaluated {
		upstream := cache.GetOrCompile(part.Expression)
		if upstream.Error != nil {
			return fmt.Sprintf("part %s: %v", part.Expression, upstream.Error)
		}
		if want := outcomeOf(t, upstream, driver, d); seen.Outcome != want {
			return fmt.Sprintf("part %s is %s, upstream: %s", part.Expression, seen.Outcome, want)
		}
	}
	if len(seen.Operands) > 0 && len(seen.Operands) != len(part.Operands) {
		return fmt.Sprintf("part %s has %d operands, and %d are told of", part.Expression, len(part.Operands), len(seen.Operands))
	}
	for i := range seen.Operands {
		if problem := partDisagreement(t, cache, &part.Operands[i], &seen.Operands[i], driver, d); problem != "" {
			return problem
		}
	}
	return ""
}

func outcomeOf(t *testing.T, compiled dracel.CompilationResult, driver string, d *resourceapi.Device) Outcome {
	t.Helper()
	matches, _, err := compiled.DeviceMatches(t.Context(), celDevice(driver, d))
	return (&Result{Matches: matches, Err: err}).Outcome()
}

func withMemory(value string) func(*resourceapi.Device) { return withCapacity("memory", value) }

func withCapacity(name, value string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: resource.MustParse(value)}
	}
}

// FuzzSelector evaluates arbitrary expressions on devices with arbitrary values.
func FuzzSelector(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(randomExpression(rand.New(rand.NewPCG(seed, 4)), 3), driver, "model", "A", int64(seed), true)
	}
	for _, expression := range []string{
		`cel.bind(g, device.attributes["gpu.example.com"], g.model == "A" && cel.bind(g, device.capacity, has(g.x.y)))`,
		`device.attributes["gpu.example.com"].exists(k, k.startsWith("m"))`,
		`device.attributes.all(d, d == device.driver) // all`,
		`device.attributes[?"gpu.example.com"].?model.orValue("B") != 'B'`,
		`device.attributes["gpu.example.com"].number in [1, 2]`,
		`device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.0.0"))`,
		`device.attributes["gpu.example.com"].list.includes("A")`,
		`device.capacity["gpu.example.com"].model.compareTo(quantity("1Gi")) >= 0 ? true : device`,
		`[[1, 2], [3]].exists(l, l.all(v, v > device.attributes["gpu.example.com"].number))`,
		`{"a": true}[device.attributes["gpu.example.com"].model]`,
		`device.attributes["gpu.example.com"].list`,
		`has(device.atributes["gpu.exmaple.com"].modle) && device.attributes.model >= 1 || !device.capacity["gpu.example.com"].memory.isLessThan("1Gi")`,
		`cel.bind(g, device.attributes["gpu.exmaple.com"], g.modle == 1 && g.number in ["1"] && [1].exists(v, v > g.version))`,
		``,
	} {
		f.Add(expression, driver, "model", "A", int64(1), false)
	}
	f.Fuzz(func(t *testing.T, expression, driver, name, value string, count int64, flag bool) {
		if len(expression) > resourceapi.CELSelectorExpressionMaxLength {
			return
		}
		attribute := resourceapi.QualifiedName(name)
		list := []resourceapi.Device{
			device("none"),
			device("text", with(name, text(value)), with("gpu.example.com/list", resourceapi.DeviceAttribute{IntValues: []int64{count}})),
			device("number", with(name, number(count)), with("gpu.example.com/number", number(count)), withMemory("1Gi")),
			device("flag", with(name, resourceapi.DeviceAttribute{BoolValue: &flag}), func(d *resourceapi.Device) {
				d.Capacity[attribute] = resourceapi.DeviceCapacity{Value: *resource.NewQuantity(count, resource.DecimalSI)}
			}),
			device("texts", func(d *resourceapi.Device) {
				d.Attributes[attribute] = resourceapi.DeviceAttribute{StringValues: []string{value, "A"}}
				d.Attributes["gpu.example.com/version"] = resourceapi.DeviceAttribute{VersionValue: &value}
			}),
			device("both", with(name, text(value)), func(d *resourceapi.Device) {
				d.Attributes[attribute] = resourceapi.DeviceAttribute{StringValue: &value, IntValue: &count}
			}),
		}
		if problem := disagreement(t, expression, driver, list, false); problem != "" {
			t.Fatal(problem)
		}
		v := New(listFeatures(), true)
		sel := v.Compile(expression)
		tryToCorrect(t, v, sel, driver, list)
		if guarded, ok := v.Guard(sel, sel.Reads); ok {
			again := v.Compile(guarded)
			for i := range list {
				result, after := v.Evaluate(t.Context(), sel, driver, &list[i]), v.Evaluate(t.Context(), again, driver, &list[i])
				if result.Err == nil && (after.Err != nil || after.Matches != result.Matches) {
					t.Fatalf("guarded as %s: %v instead of %v on %s", guarded, after, result.Matches, asJSON(list[i]))
				}
			}
		}
	})
}

// tryToCorrect looks for mistakes in a selector. It must not fail, whatever the selector
// is, and must return one that compiles.
func tryToCorrect(t *testing.T, v *Evaluator, sel *Selector, driver string, list []resourceapi.Device) {
	t.Helper()
	w := NewVocabulary(closest)
	devices := func(yield func(string, *resourceapi.Device) bool) {
		for i := range list {
			if !yield(driver, &list[i]) {
				return
			}
		}
	}
	for driver, device := range devices {
		w.Add(driver, device)
	}
	if corrected, ok := v.Correct(sel, w); ok && v.Compile(corrected.Expression).Err != nil {
		t.Fatalf("corrected as %s: %v", corrected.Expression, v.Compile(corrected.Expression).Err)
	}
	for i := range sel.Conjuncts {
		for _, looser := range v.Looser(sel, i, devices, closest) {
			if err := v.Compile(looser.Expression).Err; err != nil {
				t.Fatalf("loosened as %s: %v", looser.Expression, err)
			}
		}
	}
}

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
