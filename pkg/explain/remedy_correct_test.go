// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func withVersionOf(name, value string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Attributes[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{VersionValue: &value}
	}
}

// fleetOfTwo returns devices with 80Gi on one node and with 141Gi on another, and a NIC on
// each of them.
func fleetOfTwo(t *testing.T, more ...any) *snapshot.Snapshot {
	t.Helper()
	small := tc.Device("", "productName=Atlas-80", "memory:=85899345920", "slots=16").WithInt("cores", 8).WithBool("ecc", true).Change(withVersionOf("driverVersion", "535.1.0"))
	large := tc.Device("", "productName=Atlas-141", "memory:=141Gi", "slots=32").WithInt("cores", 12).WithBool("ecc", false).Change(withVersionOf("driverVersion", "550.54.15"))
	parts := []any{
		tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Copies(2, small)...), tc.Pool("n2", tc.Copies(1, large)...),
		tc.Pool("n1", tc.Device("nic-0").WithBool("rdma", true)).Change(ofDriver("nic.example.net")),
		tc.ClassWhere("any"), tc.ClassWhere("misspelled", `device.driver == "gpu.exampel.com"`), tc.ClassWhere("broken", `device.drivr == "gpu.example.com"`),
	}
	return tc.Cluster(append(parts, more...)...)
}

// expressionOf returns what the first edit of a remedy writes, in short.
func expressionOf(t *testing.T, r *api.Remedy) string {
	t.Helper()
	var expression string
	if len(r.Edits) == 0 || r.Edits[0].Value == nil {
		return ""
	}
	if err := json.Unmarshal(r.Edits[0].Value, &expression); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`device.attributes["gpu.example.com"]`, "x", `device.capacity["gpu.example.com"]`, "m").Replace(expression)
}

// TestCorrections covers a wrong selector in each case, and what the first remedy says
// instead. x stands for the attributes of the driver, m for the capacities.
func TestCorrections(t *testing.T) {
	long := strings.NewReplacer("x.", `device.attributes["gpu.example.com"].`, "m.", `device.capacity["gpu.example.com"].`)
	for _, test := range []struct {
		name, class, expression string
		verdict                 api.Verdict
		// want is the corrected expression, on is the node where that fits.
		want, on string
		// said is part of the summary.
		said string
	}{
		{"a typo", tc.ClassGPU, `x.produktName == "Atlas-80"`, api.Error, `x.productName == "Atlas-80"`, "n1", "exists on none of the 4 devices of all pools; did you mean productName?"},
		{"a typo behind a guard", tc.ClassGPU, `has(x.produktName) && x.produktName == "Atlas-141"`, api.DoesNotFit, `has(x.productName) && x.productName == "Atlas-141"`, "n2", "did you mean productName?"},
		{"a typo where other drivers match, too", "any", `x.produktName == "Atlas-80"`, api.Error, `has(x.productName) && x.productName == "Atlas-80"`, "n1", "did you mean productName?"},
		{"a domain", tc.ClassGPU, `device.attributes["gpu.exampel.com"].productName == "Atlas-141"`, api.Error, `x.productName == "Atlas-141"`, "n2", "did you mean gpu.example.com?"},
		{"the domain of another driver", tc.ClassGPU, `device.attributes["nic.example.net"].cores == 8`, api.Error, `x.cores == 8`, "n1", `did you mean device.attributes["gpu.example.com"].cores?`},
		{"a driver", "any", `device.driver == "gpu.exampel.com"`, api.DoesNotFit, `device.driver == "gpu.example.com"`, "n1", "no device is of driver gpu.exampel.com; did you mean gpu.example.com?"},
		{"a capacity as an attribute", tc.ClassGPU, `x.memory == "80Gi"`, api.Error, `m.memory == quantity("80Gi")`, "n1", `did you mean device.capacity["gpu.example.com"].memory?`},
		{"an attribute as a capacity", tc.ClassGPU, `has(m.cores) && m.cores.compareTo(quantity("8")) >= 0`, api.DoesNotFit, ``, "", `did you mean device.attributes["gpu.example.com"].cores?`},
		{"an attribute as a capacity, compiled", tc.ClassGPU, `m.productName == "Atlas-141"`, api.Error, `x.productName == "Atlas-141"`, "n2", "does not compile: found no matching overload for '_==_'"},
		{"an int as a string", tc.ClassGPU, `x.cores == "12"`, api.DoesNotFit, `x.cores == 12`, "n2", "attribute cores (domain gpu.example.com) is an int on all devices that have it, and is compared with a string"},
		{"a bool as a string", tc.ClassGPU, `x.ecc == "true"`, api.DoesNotFit, `x.ecc == true`, "n1", "is a bool on all devices that have it, and is compared with a string"},
		{"a string as an int", tc.ClassGPU, `x.slots >= 32`, api.Error, `int(x.slots) >= 32`, "n2", "is a string on all devices that have it, and is compared with an int"},
		{"a version as text", tc.ClassGPU, `x.driverVersion > "535.2"`, api.Error, `x.driverVersion.isGreaterThan(semver("535.2.0"))`, "n2", "is a version on all devices that have it, and is compared with a string"},
		{"a version that is none", tc.ClassGPU, `x.driverVersion.compareTo(semver("535.01")) >= 0`, api.Error, `x.driverVersion.compareTo(semver("535.1.0")) >= 0`, "n1", "No Major.Minor.Patch elements found"},
		{"a quantity with an operator", tc.ClassGPU, `m.memory > "100Gi"`, api.Error, `m.memory.isGreaterThan(quantity("100Gi"))`, "n2", "does not compile: found no matching overload"},
		{"a field", tc.ClassGPU, `device.atributes["gpu.example.com"].cores == 8`, api.Error, `x.cores == 8`, "n1", `The selector of request r does not compile: undefined field 'atributes' at 1:7 (.atributes["gpu.example.com"].cores == 8);`},
		{"a driver in the class", "misspelled", `x.cores == 8`, api.DoesNotFit, `device.driver == "gpu.example.com"`, "n1", "did you mean gpu.example.com?"},
		{"a class that does not compile", "broken", `x.cores == 8`, api.Error, `device.driver == "gpu.example.com"`, "n1", "The selector of class broken does not compile: undefined field 'drivr' at 1:7"},

		{"the nearest quantity", tc.ClassGPU, `m.memory.isGreaterThan(quantity("150Gi"))`, api.DoesNotFit, `m.memory.compareTo(quantity("141Gi")) >= 0`, "n2", "memory is 80Gi on 2 devices, 141Gi on 1; must be greater than 150Gi"},
		{"the nearest quantity from below", tc.ClassGPU, `m.memory.isLessThan(quantity("40Gi"))`, api.DoesNotFit, `m.memory.compareTo(quantity("80Gi")) <= 0`, "n1", "less than 40Gi"},
		{"the nearest quantity that is equal", tc.ClassGPU, `m.memory.compareTo(quantity("100Gi")) == 0`, api.DoesNotFit, `m.memory.compareTo(quantity("80Gi")) == 0`, "n1", "100Gi"},
		{"the nearest int", tc.ClassGPU, `x.cores >= 16`, api.DoesNotFit, `x.cores >= 12`, "n2", "16 or more"},
		{"the nearest version", tc.ClassGPU, `x.driverVersion.isGreaterThan(semver("600.0.0"))`, api.DoesNotFit, `x.driverVersion.compareTo(semver("550.54.15")) >= 0`, "n2", "greater than 600.0.0"},
		{"a typo in a string", tc.ClassGPU, `x.productName == "Altas-141"`, api.DoesNotFit, `x.productName == "Atlas-141"`, "n2", `no device has productName "Altas-141"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			snap := fleetOfTwo(t, tc.Claim(waiting, tc.GPUs("r", 1, long.Replace(test.expression)).OfClass(test.class)))
			e := whyWaiting(t, snap)
			checkRemedies(t, snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)}, e)
			if e.Verdict != test.verdict || !strings.Contains(e.Summary, test.said) {
				t.Errorf("%s, %s\nwant %s, %s", e.Verdict, e.Summary, test.verdict, test.said)
			}
			if test.want == "" {
				return
			}
			if len(e.Remedies) == 0 {
				t.Fatalf("no remedy: %s", e.Summary)
			}
			if first := &e.Remedies[0]; expressionOf(t, first) != test.want || first.Node != test.on {
				t.Errorf("got  %s on %s (%s)\nwant %s on %s", expressionOf(t, first), first.Node, first.Change, test.want, test.on)
			}
		})
	}
}

// TestCorrectionsTogether covers the same mistake in two requests, of which one alone is
// not enough to correct.
func TestCorrectionsTogether(t *testing.T) {
	const wrong = `device.attributes["gpu.example.com"].produktName == "Atlas-80"`
	e := whyWaiting(t, fleetOfTwo(t, tc.Claim(waiting, tc.GPUs("a", 1, wrong), tc.GPUs("b", 1, wrong))))
	if len(e.Remedies) == 0 || len(e.Remedies[0].Edits) != 2 {
		t.Fatalf("remedies %s, want one with two edits", asJSON(e.Remedies))
	}
	if want := "correct the selector of request a: productName instead of produktName; correct the selector of request b: productName instead of produktName"; e.Remedies[0].Change != want {
		t.Errorf("got %s, want %s", e.Remedies[0].Change, want)
	}
}

// TestCompileErrorOfNewClaim tells a user who is about to create a claim that the API
// server will refuse it.
func TestCompileErrorOfNewClaim(t *testing.T) {
	parts := []any{tc.Claim(waiting, tc.GPUs("r", 1, `true`, `device.attributes["gpu.example.com"].cores = 8`))}
	stored := whyWaiting(t, fleetOfTwo(t, parts...))
	snap := fleetOfTwo(t, parts...)
	snap.Claims[0].UID = ""
	fresh := whyWaiting(t, snap)
	const mistake = "Selector 2 of request r does not compile: Syntax error"
	for _, test := range []struct {
		e    *api.Explanation
		want string
	}{{stored, "this one was stored by an older version"}, {fresh, "(= 8), and 1 more error; the API server rejects it."}} {
		if !strings.HasPrefix(test.e.Summary, mistake) || !strings.Contains(test.e.Summary, test.want) || strings.Contains(everything(test.e), "Syntax error") {
			t.Errorf("got %s\n%s", test.e.Summary, asJSON(test.e))
		}
	}
}
