// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agext/levenshtein"
	resourceapi "k8s.io/api/resource/v1"
)

// closest returns the most similar name in a simple way: a third of the letters may be
// wrong.
func closest(name string, names []string) string {
	best, least := "", (len(name)+1)/3+1
	for _, other := range names {
		if letters := levenshtein.Distance(strings.ToLower(name), strings.ToLower(other), nil); letters < least {
			best, least = other, letters
		}
	}
	return best
}

// words returns the words of a GPU and a NIC.
func words() *Vocabulary {
	w := NewVocabulary(closest)
	yes := true
	gpu := device("gpu-0",
		with("productName", text("H100")), with("cores", number(8)), with("driverVersion", version("550.54.15")), with("ecc", resourceapi.DeviceAttribute{BoolValue: &yes}),
		with("shared", text("true")), with("slots", text("16")), with("firmware", text("1.2.3")), with("bar", text("64Gi")), with("either", number(1)),
		with("list", resourceapi.DeviceAttribute{IntValues: []int64{1}}),
		withMemory("80Gi"), withCapacity("engines", "7"))
	nic := device("nic-0", with("either", text("one")), with("rdma", resourceapi.DeviceAttribute{BoolValue: &yes}), withCapacity("bandwidth", "100G"))
	w.Add(driver, &gpu)
	w.Add("nic.example.net", &nic)
	either := device("gpu-1", with("either", text("one")))
	w.Add(driver, &either)
	return w
}

// TestCorrectInClass corrects the domain of a name that only the devices of the class
// have.
func TestCorrectInClass(t *testing.T) {
	v, w := New(listFeatures(), true), words()
	w.OfClass = true
	for _, domain := range []string{"nic.example.net", "amd.com"} {
		got, _ := v.Correct(v.Compile(fmt.Sprintf(`device.attributes[%q].productName == "H100"`, domain)), w)
		if want := `device.attributes["gpu.example.com"].productName == "H100"`; got.Expression != want {
			t.Errorf("%s: got %s, want %s", domain, got.Expression, want)
		}
	}
}

// TestCorrect covers one expression for each mistake, with x for the attributes of the
// driver and m for the capacities.
func TestCorrect(t *testing.T) {
	long := strings.NewReplacer("x.", `device.attributes["gpu.example.com"].`, "x[", `device.attributes["gpu.example.com"][`, "m.", `device.capacity["gpu.example.com"].`)
	short := strings.NewReplacer(`device.attributes["gpu.example.com"]`, "x", `device.capacity["gpu.example.com"]`, "m")
	for _, test := range []struct{ name, expression, want, changes string }{
		{"a typo", `x.produktName == "H100"`, `x.productName == "H100"`, `produktName: productName`},
		{"a typo by index", `x["produktName"] == "H100"`, `x["productName"] == "H100"`, `produktName: productName`},
		{"upper and lower case", `x.ProductName == "H100"`, `x.productName == "H100"`, `ProductName: productName`},
		{"a typo behind a guard", `has(x.produktName) && x.produktName == "H100"`, `has(x.productName) && x.productName == "H100"`, `produktName: productName`},
		{"a typo in a test", `"produktName" in device.attributes["gpu.example.com"]`, `"productName" in x`, `produktName: productName`},
		{"a typo that is optional", `x.?produktName.orValue("") == "H100"`, `x.?productName.orValue("") == "H100"`, `produktName: productName`},
		{"a typo in a loop", `["H100"].exists(v, v == x.produktName && has(x.produktName))`, `["H100"].exists(v, v == x.productName && has(x.productName))`, `produktName: productName`},
		{"a typo of a bound name", `cel.bind(g, device.attributes["gpu.example.com"], has(g.produktName) && g.produktName == "H100")`, `has(x.productName) && x.productName == "H100"`, `produktName: productName`},
		{"a domain", `device.attributes["gpu.exampel.com"].productName == "H100"`, `x.productName == "H100"`, `gpu.exampel.com: gpu.example.com`},
		{"a domain and a name", `device.attributes["gpu.exampel.com"].produktName == "H100"`, `x.productName == "H100"`, `device.attributes["gpu.exampel.com"].produktName: x.productName`},
		{"the domain of another driver", `device.attributes["nic.example.net"].productName == "H100"`, ``, ``},
		{"a domain that nobody knows", `device.attributes["amd.com"].productName == "H100"`, ``, ``},
		{"a part of a domain", `device.attributes["example.com"].productName == "H100"`, `x.productName == "H100"`, `example.com: gpu.example.com`},
		{"a test of a domain", `"gpu.exampel.com" in device.attributes`, `"gpu.example.com" in device.attributes`, `gpu.exampel.com: gpu.example.com`},
		{"a driver", `device.driver == "gpu.exampel.com"`, `device.driver == "gpu.example.com"`, `gpu.exampel.com: gpu.example.com`},
		{"a driver on the left", `"gpu.exampel.com" == device.driver`, `"gpu.example.com" == device.driver`, `gpu.exampel.com: gpu.example.com`},
		{"a qualified name", `device.attributes["gpu.example.com/productName"] == "H100"`, `x.productName == "H100"`, `device.attributes["gpu.example.com/productName"]: x.productName`},
		{"no domain", `device.attributes["productName"] == "H100"`, `x.productName == "H100"`, `device.attributes["productName"]: x.productName`},
		{"no domain, as a field", `device.attributes.productName == "H100"`, `x.productName == "H100"`, `device.attributes.productName: x.productName`},

		{"a capacity as an attribute", `x.memory == "80Gi"`, `m.memory == quantity("80Gi")`, `x.memory == "80Gi": m.memory == quantity("80Gi")`},
		{"a capacity as an attribute with a method", `x.memory.isGreaterThan(quantity("40Gi"))`, `m.memory.isGreaterThan(quantity("40Gi"))`, `x.memory: m.memory`},
		{"a capacity as an attribute behind a guard", `has(x.memory) && x.memory.compareTo(quantity("40Gi")) >= 0`, `has(m.memory) && m.memory.compareTo(quantity("40Gi")) >= 0`, `x.memory: m.memory`},
		{"a capacity as an attribute with a typo", `x.memroy >= "40Gi"`, `m.memory.compareTo(quantity("40Gi")) >= 0`, `x.memroy >= "40Gi": m.memory.compareTo(quantity("40Gi")) >= 0`},
		{"an attribute as a capacity", `m.productName == "H100"`, `x.productName == "H100"`, `m.productName: x.productName`},
		{"an attribute as a capacity by number", `m.cores >= 8`, `x.cores >= 8`, `m.cores: x.cores`},

		{"a number as a text", `x.cores == "8"`, `x.cores == 8`, `x.cores == "8": x.cores == 8`},
		{"a number as a text, greater", `x.cores >= "8"`, `x.cores >= 8`, `x.cores >= "8": x.cores >= 8`},
		{"a number as a text on the left", `"8" < x.cores`, `8 < x.cores`, `"8" < x.cores: 8 < x.cores`},
		{"no number", `x.cores == "many"`, ``, ``},
		{"a text as a number", `x.slots == 16`, `x.slots == "16"`, `x.slots == 16: x.slots == "16"`},
		{"a text as a number, greater", `x.slots >= 16`, `int(x.slots) >= 16`, `x.slots >= 16: int(x.slots) >= 16`},
		{"a text that is no number", `x.productName >= 16`, ``, ``},
		{"a truth value as a text", `x.ecc == "true"`, `x.ecc == true`, `x.ecc == "true": x.ecc == true`},
		{"a truth value as a text, not", `x.ecc != "False"`, `x.ecc != false`, `x.ecc != "False": x.ecc != false`},
		{"a text as a truth value", `x.shared == true`, `x.shared == "true"`, `x.shared == true: x.shared == "true"`},
		{"a text as a flag", `device.driver == "gpu.example.com" && x.shared`, `device.driver == "gpu.example.com" && x.shared == "true"`, `x.shared: x.shared == "true"`},
		{"a text as a flag, not", `!x.shared`, `!(x.shared == "true")`, `x.shared: x.shared == "true"`},
		{"numbers in a list", `x.cores in ["8", "16"]`, `x.cores in [8, 16]`, `x.cores in ["8", "16"]: x.cores in [8, 16]`},
		{"values of several types", `x.either == true`, ``, ``},

		{"a version as a text", `x.driverVersion == "550.54.15"`, `x.driverVersion == semver("550.54.15")`, `x.driverVersion == "550.54.15": x.driverVersion == semver("550.54.15")`},
		{"a version as a text, at least", `x.driverVersion >= "550.054"`, `x.driverVersion.compareTo(semver("550.54.0")) >= 0`, `x.driverVersion >= "550.054": x.driverVersion.compareTo(semver("550.54.0")) >= 0`},
		{"a version as a text, greater", `x.driverVersion > "535"`, `x.driverVersion.isGreaterThan(semver("535.0.0"))`, `x.driverVersion > "535": x.driverVersion.isGreaterThan(semver("535.0.0"))`},
		{"a version as a text, less", `"600" > x.driverVersion`, `x.driverVersion.isLessThan(semver("600.0.0"))`, `"600" > x.driverVersion: x.driverVersion.isLessThan(semver("600.0.0"))`},
		{"a version as a number", `x.driverVersion >= 535`, `x.driverVersion.compareTo(semver("535.0.0")) >= 0`, `x.driverVersion >= 535: x.driverVersion.compareTo(semver("535.0.0")) >= 0`},
		{"a version with an operator", `x.driverVersion >= semver("535.0.0")`, `x.driverVersion.compareTo(semver("535.0.0")) >= 0`, `x.driverVersion >= semver("535.0.0"): x.driverVersion.compareTo(semver("535.0.0")) >= 0`},
		{"a method with a text", `x.driverVersion.isGreaterThan("535.1")`, `x.driverVersion.isGreaterThan(semver("535.1.0"))`, `x.driverVersion.isGreaterThan("535.1"): x.driverVersion.isGreaterThan(semver("535.1.0"))`},
		{"a short version", `x.driverVersion.isGreaterThan(semver("535.1"))`, `x.driverVersion.isGreaterThan(semver("535.1.0"))`, `x.driverVersion.isGreaterThan(semver("535.1")): x.driverVersion.isGreaterThan(semver("535.1.0"))`},
		{"a version with zeros", `x.driverVersion.compareTo(semver("v535.054.00")) >= 0`, `x.driverVersion.compareTo(semver("535.54.0")) >= 0`, `x.driverVersion.compareTo(semver("v535.054.00")) >= 0: x.driverVersion.compareTo(semver("535.54.0")) >= 0`},
		{"no version", `x.driverVersion == "latest"`, ``, ``},
		{"a text as a version", `x.firmware.isGreaterThan(semver("1.0.0"))`, `semver(x.firmware).isGreaterThan(semver("1.0.0"))`, `x.firmware.isGreaterThan(semver("1.0.0")): semver(x.firmware).isGreaterThan(semver("1.0.0"))`},
		{"a text as a quantity", `x.bar.compareTo(quantity("32Gi")) >= 0`, `quantity(x.bar).compareTo(quantity("32Gi")) >= 0`, `x.bar.compareTo(quantity("32Gi")) >= 0: quantity(x.bar).compareTo(quantity("32Gi")) >= 0`},

		{"a quantity with an operator", `m.memory >= quantity("80Gi")`, `m.memory.compareTo(quantity("80Gi")) >= 0`, `m.memory >= quantity("80Gi"): m.memory.compareTo(quantity("80Gi")) >= 0`},
		{"a quantity as a text", `m.memory > "40Gi"`, `m.memory.isGreaterThan(quantity("40Gi"))`, `m.memory > "40Gi": m.memory.isGreaterThan(quantity("40Gi"))`},
		{"a quantity equal to a text", `m.memory == "80Gi"`, `m.memory == quantity("80Gi")`, `m.memory == "80Gi": m.memory == quantity("80Gi")`},
		{"a quantity as a number of bytes", `m.memory >= 85899345920`, `m.memory.compareTo(quantity("80Gi")) >= 0`, `m.memory >= 85899345920: m.memory.compareTo(quantity("80Gi")) >= 0`},
		{"a quantity without a unit", `m.memory >= 80`, ``, ``},
		{"a small quantity", `m.engines >= 7`, `m.engines.compareTo(quantity("7")) >= 0`, `m.engines >= 7: m.engines.compareTo(quantity("7")) >= 0`},
		{"a method with a quantity as a text", `m.memory.isGreaterThan("40Gi")`, `m.memory.isGreaterThan(quantity("40Gi"))`, `m.memory.isGreaterThan("40Gi"): m.memory.isGreaterThan(quantity("40Gi"))`},
		{"a unit with a B", `m.memory.isGreaterThan(quantity("40 GiB"))`, `m.memory.isGreaterThan(quantity("40Gi"))`, `m.memory.isGreaterThan(quantity("40 GiB")): m.memory.isGreaterThan(quantity("40Gi"))`},
		{"a number without an end", `m.memory >= quantity("1e999999999")`, ``, ``},

		{"a field", `device.atributes["gpu.example.com"].productName == "H100"`, `x.productName == "H100"`, `device.atributes: device.attributes`},
		{"a field behind a guard", `has(device.atributes["gpu.example.com"].cores) && device.capacities["gpu.example.com"].memory == quantity("80Gi")`, `has(x.cores) && m.memory == quantity("80Gi")`, `device.atributes: device.attributes, device.capacities: device.capacity`},
		{"the variable", `devcie.driver == "gpu.example.com"`, `device.driver == "gpu.example.com"`, `devcie: device`},
		{"the variable and a field", `devices.attribute["gpu.example.com"].productName == "H100"`, `x.productName == "H100"`, `devices: device, device.attribute: device.attributes`},
		{"a method", `m.memory.isgreaterthan(quantity("40Gi"))`, `m.memory.isGreaterThan(quantity("40Gi"))`, `isgreaterthan: isGreaterThan`},
		{"a function", `m.memory.isGreaterThan(quantiy("40Gi"))`, `m.memory.isGreaterThan(quantity("40Gi"))`, `quantiy: quantity`},
		{"several mistakes", `device.atributes["gpu.example.com"].coers >= "8" && m.memory >= "40Gi"`, `x.cores >= 8 && m.memory.compareTo(quantity("40Gi")) >= 0`, `device.atributes["gpu.example.com"].coers >= "8": x.cores >= 8, m.memory >= "40Gi": m.memory.compareTo(quantity("40Gi")) >= 0`},
		{"a variable of a macro", `[1].all(devise, devise == 1) && device.atributes["gpu.example.com"].cores == 8`, `[1].all(devise, devise == 1) && x.cores == 8`, `device.atributes: device.attributes`},

		{"nothing wrong", `x.cores >= 8 && m.memory.compareTo(quantity("80Gi")) >= 0 && x.driverVersion.isGreaterThan(semver("1.2.3"))`, ``, ``},
		{"something else", `x.unheard == 1`, ``, ``},
		{"a syntax error", `x.cores ==`, ``, ``},
		{"an assignment", `device.driver = "a=b"`, `device.driver == "a=b"`, `=: ==`},
		{"an assignment and a typo", `device.driver = "gpu.exampel.com"`, `device.driver == "gpu.example.com"`, `=: ==, gpu.exampel.com: gpu.example.com`},
		{"operators of other languages", `x.cores => 8 & x.productName === 'H"100' | x.cores <> 3`, `x.cores >= 8 && x.productName == 'H"100' || x.cores != 3`, `=>: >=, &: &&, ===: ==, |: ||, <>: !=`},
		{"quotes of a word processor", `device.driver == “gpu.example.com”`, `device.driver == "gpu.example.com"`, `“: ", ”: "`},
		{"text that never ends", `device.driver = "gpu.example.com`, ``, ``},
		{"not a truth value", `x.cores + 1`, ``, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := New(listFeatures(), true)
			got, ok := v.Correct(v.Compile(long.Replace(test.expression)), words())
			if short.Replace(got.Expression) != test.want || ok != (test.want != "") {
				t.Errorf("got  %s (%v)\nwant %s", short.Replace(got.Expression), ok, test.want)
			}
			var changes []string
			for _, change := range got.Changes {
				changes = append(changes, short.Replace(fmt.Sprintf("%s: %s", change.From, change.To)))
			}
			if got := strings.Join(changes, ", "); got != test.changes {
				t.Errorf("changes\n%s\nwant\n%s", got, test.changes)
			}
			if !ok {
				return
			}
			if again, more := v.Correct(v.Compile(got.Expression), words()); more {
				t.Errorf("what is correct is corrected again: %s", again.Expression)
			}
		})
	}
}

// TestCorrectionsMeanTheSame makes mistakes in random selectors that are right.
// Wherever something is corrected, it has to make of every device what the
// original made of it.
func TestCorrectionsMeanTheSame(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 300
	}
	mistakes := []struct{ right, wrong string }{
		{`.model `, `.modell `},
		{`["model"]`, `["modle"]`},
		{`device.attributes["gpu.example.com"]`, `device.attributes["gpu.exmaple.com"]`},
		{`device.attributes["gpu.example.com"]`, `device.atributes["gpu.example.com"]`},
		{`device.driver == "gpu.example.com"`, `device.driver == "gpu.exmaple.com"`},
		{`device.capacity`, `device.attributes`},
		{`device.capacity`, `device.capacities`},
		{`quantity("`, `quantty("`},
		{`compareTo(quantity("1Gi"))`, `compareTo("1Gi")`},
		{`.flag`, `.flagg`},
		{`.a >= 1`, `.a >= "1"`},
		{`.a == 2`, `.a == "2"`},
		{`.b < 1`, `.b < "1"`},
		{`.b != 0`, `.b != "0"`},
	}
	counts := map[string]int{}
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 5))
		right := randomExpression(random, 3)
		wrong := right
		for range 3 {
			mistake := mistakes[random.IntN(len(mistakes))]
			wrong = strings.ReplaceAll(wrong, mistake.right, mistake.wrong)
		}
		if wrong == right {
			counts["without a mistake"]++
			continue
		}
		v, w := New(listFeatures(), true), NewVocabulary(closest)
		list := make([]resourceapi.Device, 40)
		for i := range list {
			list[i] = randomDevice(random)
			w.Add(driver, &list[i])
		}
		if _, ok := v.Correct(v.Compile(right), w); ok {
			counts["about what no device has"]++
			continue
		}
		corrected, ok := v.Correct(v.Compile(wrong), w)
		if !ok {
			counts["not corrected"]++
			continue
		}
		counts["corrected"]++
		want, got := v.Compile(right), v.Compile(corrected.Expression)
		for i := range list {
			before, after := v.Evaluate(t.Context(), want, driver, &list[i]), v.Evaluate(t.Context(), got, driver, &list[i])
			if before.Outcome() != after.Outcome() {
				t.Fatalf("seed %d: %s\nwith mistakes %s\nis corrected as %s\n%s instead of %s on %s",
					seed, right, wrong, corrected.Expression, after.Outcome(), before.Outcome(), asJSON(list[i]))
			}
		}
	}
	t.Log(counts)
	if counts["corrected"] < cases/5 || counts["not corrected"] > cases/10 {
		t.Errorf("too few mistakes were corrected: %v", counts)
	}
}
