// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"maps"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
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

// TestLooser asks for what one of the devices has instead.
func TestLooser(t *testing.T) {
	const a, model = `device.attributes["gpu.example.com"].a`, `device.attributes["gpu.example.com"].model`
	const memory = `device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`
	list := map[string]*resourceapi.Device{}
	for _, d := range []resourceapi.Device{
		device("d0", with("a", number(1)), with("model", text("A10")), withMemory("24Gi")),
		device("d1", with("a", number(3)), with("model", text("A100")), withMemory("40Gi")),
		device("d2", with("a", text("three")), with("model", text("H100"))),
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
	for _, test := range []struct {
		expression string
		want       []Looser
	}{
		{a + " >= 5", []Looser{{a + " >= 3", "a 3 or more"}, {a + " >= 1", "a 1 or more"}}},
		{a + " < 1", []Looser{{a + " <= 1", "a 1 or less"}, {a + " <= 3", "a 3 or less"}}},
		{a + " > 3", []Looser{{a + " >= 3", "a 3 or more"}, {a + " >= 1", "a 1 or more"}}},
		{a + " >= 1", nil},
		{a + " != 1", nil},
		{a + " == 1 // ünique", nil},
		{memory, []Looser{
			{`device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0`, "memory 40Gi or more"},
			{`device.capacity["gpu.example.com"].memory.compareTo(quantity("24Gi")) >= 0`, "memory 24Gi or more"},
		}},
		{model + ` == "B200"`, []Looser{{model + ` == "H100"`, `model "H100"`}}},
	} {
		t.Run(test.expression, func(t *testing.T) {
			v := New(listFeatures(), true)
			if got := v.Looser(v.Compile(test.expression), 0, devices, nearest); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
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

// TestNames gives names without a domain that of the driver.
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
