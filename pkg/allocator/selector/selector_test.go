// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestDrivers(t *testing.T) {
	for expression, want := range map[string][]string{
		`device.driver == "a.example.com"`:                                               {"a.example.com"},
		`"a.example.com" == device.driver && device.attributes["x"].y == "z"`:            {"a.example.com"},
		`device.driver == "a.example.com" || device.driver == "b.example.com"`:           {"a.example.com", "b.example.com"},
		`device.driver == "a.example.com" || device.driver.startsWith("b")`:              nil,
		`device.driver == "a.example.com" && (device.driver == "b.example.com" || true)`: {"a.example.com"},
		`cel.bind(d, device.driver, d == "a.example.com" && !d.startsWith("nic"))`:       {"a.example.com"},
		`device.driver != "a.example.com"`:                                               nil,
		`!(device.driver == "a.example.com")`:                                            nil,
		`device.driver.startsWith("a")`:                                                  nil,
		`device.attributes["x"].driver == "a.example.com"`:                               nil,
		`syntax error`: nil,
	} {
		t.Run(expression, func(t *testing.T) {
			if got := New(listFeatures(), true).Compile(expression).Drivers(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestPartsAsText writes parts in words, and the expression without them.
func TestPartsAsText(t *testing.T) {
	const x = `device.attributes["gpu.example.com"]`
	sel := New(listFeatures(), true).Compile(x + `.model == "A" && device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0 && (` + x + `.a == 1 || ` + x + `.b == 2)`)
	for i, want := range []string{`model "A"`, "memory 80Gi or more", x + ".a == 1 || " + x + ".b == 2"} {
		if got := sel.Conjuncts[i].String(); got != want {
			t.Errorf("part %d is %q, want %q", i, got, want)
		}
	}
	for _, test := range []struct {
		dropped []int
		want    string
	}{
		{nil, `(` + x + `.model == "A") && (device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0) && (` + x + `.a == 1 || ` + x + `.b == 2)`},
		{[]int{0, 1}, x + ".a == 1 || " + x + ".b == 2"},
		{[]int{1, 2}, x + `.model == "A"`},
		{[]int{0, 1, 2}, "true"},
	} {
		if got := sel.Without(test.dropped); got != test.want {
			t.Errorf("without %v it is %s, want %s", test.dropped, got, test.want)
		}
	}
}

// TestLooser asks for what one of the devices has instead, the nearest first.
func TestLooser(t *testing.T) {
	const x, memory = `device.attributes["gpu.example.com"]`, `device.capacity["gpu.example.com"].memory`
	list := map[string]*resourceapi.Device{}
	for _, d := range []resourceapi.Device{
		device("d0", with("a", number(1)), with("model", text("A10")), with("v", version("1.2.0")), withMemory("80Gi")),
		device("d1", with("a", number(3)), with("model", text("A100")), with("v", version("1.10.0")), withMemory("141Gi")),
		device("d2", with("a", text("three")), with("model", text("H100")), with("v", version("2.9.0")), withMemory("42949672960")),
		device("d3", with("a", number(7)), with("model", text("H100")), withMemory("40Gi")),
	} {
		list[d.Name] = &d
	}
	devices := func(yield func(string, *resourceapi.Device) bool) {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if !yield(driver, list[name]) {
				return
			}
		}
	}
	nearest := func(_ string, names []string) string { return names[len(names)-1] }
	for _, test := range []struct{ expression, want string }{
		{x + `.a >= 8`, `x.a >= 7 (a 7 or more), x.a >= 3 (a 3 or more), x.a >= 1 (a 1 or more)`},
		{x + `.a > 7`, `x.a >= 7 (a 7 or more), x.a >= 3 (a 3 or more), x.a >= 1 (a 1 or more)`},
		{x + `.a < 1`, `x.a <= 1 (a 1 or less), x.a <= 3 (a 3 or less), x.a <= 7 (a 7 or less)`},
		{`0 >= ` + x + `.a`, `1 >= x.a (a 1 or less), 3 >= x.a (a 3 or less), 7 >= x.a (a 7 or less)`},
		{x + `.a == 4`, `x.a == 3 (a 3), x.a == 7 (a 7), x.a == 1 (a 1)`},
		{x + `.a == 5`, `x.a == 7 (a 7), x.a == 3 (a 3), x.a == 1 (a 1)`},
		{x + `.a >= 1`, ``},
		{x + `.a != 1`, ``},
		{x + `.a == "five"`, `x.a == "three" (a "three")`},
		{x + `.a == 6 // ünique`, `x.a == 7 (a 7), x.a == 3 (a 3), x.a == 1 (a 1)`},
		{x + `.model == "B200"`, `x.model == "H100" (model "H100")`},
		{`has(` + x + `.model)`, ``},
		{memory + `.compareTo(quantity("150Gi")) >= 0`, `m.compareTo(quantity("141Gi")) >= 0 (memory 141Gi or more), m.compareTo(quantity("80Gi")) >= 0 (memory 80Gi or more), m.compareTo(quantity("40Gi")) >= 0 (memory 40Gi or more)`},
		{memory + `.compareTo(quantity("141Gi")) > 0`, `m.compareTo(quantity("141Gi")) >= 0 (memory 141Gi or more), m.compareTo(quantity("80Gi")) >= 0 (memory 80Gi or more), m.compareTo(quantity("40Gi")) >= 0 (memory 40Gi or more)`},
		{memory + `.isGreaterThan(quantity("100Gi"))`, `m.compareTo(quantity("80Gi")) >= 0 (memory 80Gi or more), m.compareTo(quantity("40Gi")) >= 0 (memory 40Gi or more)`},
		{memory + `.isLessThan(quantity("40Gi"))`, `m.compareTo(quantity("40Gi")) <= 0 (memory 40Gi or less), m.compareTo(quantity("80Gi")) <= 0 (memory 80Gi or less), m.compareTo(quantity("141Gi")) <= 0 (memory 141Gi or less)`},
		{`!` + memory + `.isLessThan(quantity("100Gi"))`, `!m.isLessThan(quantity("80Gi")) (memory 80Gi or more), !m.isLessThan(quantity("40Gi")) (memory 40Gi or more)`},
		{`!` + memory + `.isGreaterThan(quantity("1Gi"))`, `!m.isGreaterThan(quantity("40Gi")) (memory 40Gi or less), !m.isGreaterThan(quantity("80Gi")) (memory 80Gi or less), !m.isGreaterThan(quantity("141Gi")) (memory 141Gi or less)`},
		{memory + ` == quantity("100Gi")`, `m == quantity("80Gi") (memory 80Gi), m == quantity("141Gi") (memory 141Gi), m == quantity("40Gi") (memory 40Gi)`},
		{memory + `.compareTo(quantity("1e999999999")) >= 0`, ``},
		{x + `.v.isGreaterThan(semver("2.0.0"))`, `x.v.compareTo(semver("1.10.0")) >= 0 (v 1.10.0 or more), x.v.compareTo(semver("1.2.0")) >= 0 (v 1.2.0 or more)`},
		{x + `.v.compareTo(semver("3.0.0")) >= 0`, `x.v.compareTo(semver("2.9.0")) >= 0 (v 2.9.0 or more), x.v.compareTo(semver("1.10.0")) >= 0 (v 1.10.0 or more), x.v.compareTo(semver("1.2.0")) >= 0 (v 1.2.0 or more)`},
		{x + `.v == semver("1.9.0")`, `x.v == semver("1.10.0") (v 1.10.0), x.v == semver("1.2.0") (v 1.2.0), x.v == semver("2.9.0") (v 2.9.0)`},
	} {
		t.Run(test.expression, func(t *testing.T) {
			v := New(listFeatures(), true)
			var got []string
			for _, each := range v.Looser(v.Compile(test.expression), 0, devices, nearest) {
				got = append(got, fmt.Sprintf("%s (%s)", shortly(each.Expression), each.Wanted))
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// shortly abbreviates what expressions have in common.
func shortly(expression string) string {
	return strings.NewReplacer(`device.attributes["gpu.example.com"]`, "x", `device.capacity["gpu.example.com"].memory`, "m").Replace(expression)
}

// TestLooserKeepsTheRest changes one part of an expression and leaves the others
// as they are.
func TestLooserKeepsTheRest(t *testing.T) {
	const x = `device.attributes["gpu.example.com"]`
	d := device("d", with("a", number(2)))
	devices := func(yield func(string, *resourceapi.Device) bool) { yield(driver, &d) }
	for expression, want := range map[string]string{
		`has(` + x + `.a) && ` + x + `.a > 3 && (` + x + `.b || ` + x + `.list.exists(v, v == 'ü'))`: `has(x.a) && x.a >= 2 && (x.b || x.list.exists(v, v == "ü"))`,
		`device.driver == "y" && cel.bind(g, ` + x + `, g.a > 3 && has(g.b))`:                        `device.driver == "y" && x.a >= 2 && has(x.b)`,
	} {
		v := New(listFeatures(), true)
		sel := v.Compile(expression)
		var got string
		if list := v.Looser(sel, min(1, len(sel.Conjuncts)-1), devices, nil); len(list) > 0 {
			got = shortly(list[0].Expression)
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", expression, got, want)
		}
	}
}

// TestWanted says what comparisons ask for, however they are written.
func TestWanted(t *testing.T) {
	const x, memory = `device.attributes["gpu.example.com"]`, `device.capacity["gpu.example.com"].memory`
	for expression, want := range map[string]string{
		memory + `.isGreaterThan(quantity("150Gi"))`:       "memory greater than 150Gi",
		memory + `.isLessThan(quantity("161061273600"))`:   "memory less than 150Gi",
		`!` + memory + `.isLessThan(quantity("150Gi"))`:    "memory 150Gi or more",
		`!` + memory + `.isGreaterThan(quantity("150Gi"))`: "memory 150Gi or less",
		memory + `.compareTo(quantity("150Gi")) == 0`:      "memory 150Gi",
		memory + `.compareTo(quantity("150Gi")) != 0`:      "memory anything but 150Gi",
		memory + ` == quantity("150Gi")`:                   "memory 150Gi",
		x + `.v.isGreaterThan(semver("1.2.3"))`:            "v greater than 1.2.3",
		`8 < ` + x + `.cores`:                              "cores greater than 8",
		x + `.flag == true`:                                "flag true",
		memory + `.isGreaterThan(quantity("1e999999999"))`: "memory greater than 1e999999999",
		memory + `.isGreaterThan(` + memory + `)`:          memory + `.isGreaterThan(` + memory + `)`,
		memory + `.compareTo(quantity("150Gi")) > 1`:       memory + `.compareTo(quantity("150Gi")) > 1`,
		`!(` + x + `.a == 1)`:                              `!(` + x + `.a == 1)`,
		x + `.?a == optional.of(1)`:                        x + `.?a == optional.of(1)`,
	} {
		if got := New(listFeatures(), true).Compile(expression).Conjuncts[0].String(); got != want {
			t.Errorf("%s asks for %s, want %s", expression, got, want)
		}
	}
}

// TestQuantityText writes quantities for people without changing their value.
func TestQuantityText(t *testing.T) {
	for from, want := range map[string]string{
		"85899345920": "80Gi", "80Gi": "80Gi", "81920Mi": "80Gi", "85520809984": "81559Mi", "80G": "80G", "80": "80", "16384": "16384", "1048576": "1Mi",
		"0": "0", "500m": "500m", "85899345921": "85899345921", "-85899345920": "-80Gi", "1e30": "1e30", "1.5Gi": "1536Mi",
	} {
		quantity := resource.MustParse(from)
		got := QuantityText(quantity)
		if back := resource.MustParse(got); got != want || back.Cmp(quantity) != 0 {
			t.Errorf("%s is written %s, want %s", from, got, want)
		}
	}
}

// TestAttributeTexts formats every kind of value for CEL and for people.
func TestAttributeTexts(t *testing.T) {
	yes, version := true, "1.2.3"
	for _, test := range []struct {
		value          resourceapi.DeviceAttribute
		literal, plain string
	}{
		{text(`a "b"`), `"a \"b\""`, `a "b"`},
		{number(-7), "-7", "-7"},
		{resourceapi.DeviceAttribute{BoolValue: &yes}, "true", "true"},
		{resourceapi.DeviceAttribute{VersionValue: &version}, "1.2.3", "1.2.3"},
		{resourceapi.DeviceAttribute{StringValues: []string{"a", "b"}}, `["a", "b"]`, "a,b"},
		{resourceapi.DeviceAttribute{IntValues: []int64{1, 2}}, "[1, 2]", "1,2"},
		{resourceapi.DeviceAttribute{BoolValues: []bool{true, false}}, "[true, false]", "true,false"},
		{resourceapi.DeviceAttribute{VersionValues: []string{"1.0.0"}}, "[1.0.0]", "1.0.0"},
		{resourceapi.DeviceAttribute{IntValues: []int64{}}, "[]", ""},
		{resourceapi.DeviceAttribute{}, "a value of an unknown type", ""},
	} {
		if literal, plain := Literal(test.value), Plain(test.value); literal != test.literal || plain != test.plain {
			t.Errorf("%s is %s and %s, want %s and %s", asJSON(test.value), literal, plain, test.literal, test.plain)
		}
	}
}

// TestNames gives names without a domain the driver's domain.
func TestNames(t *testing.T) {
	if got := Qualified("a", driver) + " " + Qualified("x.example.com/a", driver); got != driver+"/a x.example.com/a" {
		t.Errorf("got %s", got)
	}
	values := map[resourceapi.QualifiedName]int{"a": 1, "x.example.com/a": 2, "gpu.example.com/b": 3}
	for _, test := range []struct {
		domain, name string
		want         int
	}{{driver, "a", 1}, {"x.example.com", "a", 2}, {driver, "b", 3}, {"y.example.com", "a", 0}} {
		if got, ok := Lookup(values, test.domain, test.name, driver); got != test.want || ok != (test.want > 0) {
			t.Errorf("%s/%s is %d, %v", test.domain, test.name, got, ok)
		}
	}
}
