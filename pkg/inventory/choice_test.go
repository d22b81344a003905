// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

func attributesOf(t *testing.T, v *Inventory, wanted DeviceChoice) ([]api.Attribute, []string) {
	t.Helper()
	devices, _, err := v.ChosenDevices(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	list, notes, err := v.Attributes(t.Context(), devices)
	if err != nil {
		t.Fatal(err)
	}
	return list, notes
}

// matchesUpstream counts the devices for which an expression is true, or fails, in the
// library of the scheduler.
func matchesUpstream(t *testing.T, facts *cluster.Cluster, devices []*cluster.Device, expression string) (matches, fails int) {
	t.Helper()
	compiled := dracel.GetCompiler(facts.Gates.CEL()).CompileCELExpression(expression, dracel.Options{})
	if compiled.Error != nil {
		t.Fatalf("%s: %v", expression, compiled.Error)
	}
	for _, d := range devices {
		result, _, err := compiled.DeviceMatches(t.Context(), dracel.Device{
			Driver: d.ID.Driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity,
		})
		switch {
		case err != nil:
			fails++
		case result:
			matches++
		}
	}
	return matches, fails
}

// TestAttributesAgreeWithUpstream holds the expressions of random clusters against
// the scheduler's library, and the counts against the devices one by one.
func TestAttributesAgreeWithUpstream(t *testing.T) {
	expressions := 0
	for seed := range uint64(60) {
		v := inventoryOf(t, fleet.Random(seed).Snapshot)
		for _, driver := range []string{"", "gpu.example.com"} {
			wanted := DeviceChoice{Driver: driver}
			devices, _, err := v.ChosenDevices(t.Context(), wanted)
			if err != nil {
				t.Fatal(err)
			}
			list, notes := attributesOf(t, v, wanted)
			for _, a := range list {
				counted := a.DevicesWithMoreValues
				for _, value := range a.Values {
					counted += value.Devices
				}
				has := 0
				for _, d := range devices {
					for name := range d.Attributes {
						has += oneIf(a.Source == api.SourceAttributes && qualified(name, d) == a.Name)
					}
					for name := range d.Capacity {
						has += oneIf(a.Source == api.SourceCapacity && qualified(name, d) == a.Name)
					}
				}
				if a.Devices != has || counted != has || a.TotalDevices != len(devices) {
					t.Errorf("seed %d: %s is on %d devices, %d with values, of %d; want %d of %d", seed, a.Name, a.Devices, counted, a.TotalDevices, has, len(devices))
				}
				if a.Expression == "" {
					continue
				}
				expressions++
				matches, fails := matchesUpstream(t, v.cluster, devices, a.Expression)
				if matches != a.Matches || matches == 0 || fails > 0 && len(notes) == 0 {
					t.Errorf("seed %d: %s is true for %d devices and fails for %d, not true for %d", seed, a.Expression, matches, fails, a.Matches)
				}
			}
		}
	}
	if expressions < 200 {
		t.Errorf("only %d expressions were tried", expressions)
	}
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

func qualified(name resourceapi.QualifiedName, d *cluster.Device) string {
	if strings.Contains(string(name), "/") {
		return string(name)
	}
	return d.ID.Driver + "/" + string(name)
}

func TestAttributes(t *testing.T) {
	gpus := tc.Pool("n1",
		tc.Device("gpu-0", "model=A", "memory:=80Gi").WithInt("numa", 0).WithBool("in", true),
		tc.Device("gpu-1", "model=A", "memory:=40Gi").WithInt("numa", 1).WithList("links", "a", "b"),
		tc.Device("gpu-2", `model=quo"te\and`+"\n", "memory:=80Gi").Change(version("driverVersion", "1.2.3")),
	)
	nic := tc.Slice("nics", "nic.example.com", "n1", tc.Device("nic-0").WithInt("gpu.example.com/model", 7))
	v := inventoryWith(t, gpus, nic)
	list, notes := attributesOf(t, v, DeviceChoice{})
	if len(notes) > 0 {
		t.Errorf("notes: %v", notes)
	}
	got := map[string]string{}
	for _, a := range list {
		var values []string
		for _, value := range a.Values {
			values = append(values, value.Value)
		}
		got[a.Name] = strings.Join(a.Types, ",") + " " + strings.Join(values, " ") + " | " + a.Expression
	}
	for name, want := range map[string]string{
		"gpu.example.com/model":         `int,string "A" 7 "quo\"te\\and\n" | device.attributes["gpu.example.com"].model == "A"`,
		"gpu.example.com/memory":        `quantity 80Gi 40Gi | has(device.capacity["gpu.example.com"].memory) && device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`,
		"gpu.example.com/in":            `bool true | "in" in device.attributes["gpu.example.com"] && device.attributes["gpu.example.com"]["in"] == true`,
		"gpu.example.com/driverVersion": `version 1.2.3 | has(device.attributes["gpu.example.com"].driverVersion) && device.attributes["gpu.example.com"].driverVersion.compareTo(semver("1.2.3")) >= 0`,
		"gpu.example.com/links":         `list ["a", "b"] | has(device.attributes["gpu.example.com"].links) && device.attributes["gpu.example.com"].links.includes("a")`,
	} {
		if got[name] != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got[name], want)
		}
	}
	ofDriver, _ := attributesOf(t, v, DeviceChoice{Driver: "gpu.example.com"})
	i := slices.IndexFunc(ofDriver, func(a api.Attribute) bool { return a.Name == "gpu.example.com/model" })
	if want := `device.attributes["gpu.example.com"].model == "A"`; ofDriver[i].Expression != want {
		t.Errorf("of the driver alone, the expression is %s, want %s: all devices have it", ofDriver[i].Expression, want)
	}
}

func version(name, value string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Attributes[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{VersionValue: ptr.To(value)}
	}
}

// TestAttributesOfOddDevices covers a device on which every selector fails.
func TestAttributesOfOddDevices(t *testing.T) {
	v := inventoryWith(t, tc.Pool("n1", tc.Device("gpu-0", "model=A").Change(version("firmware", "01.2")), tc.Device("gpu-1", "model=A"), tc.Device("gpu-2", "model=B")))
	list, notes := attributesOf(t, v, DeviceChoice{})
	if len(notes) != 1 || !strings.Contains(notes[0], "every selector fails on 1 device with an attribute that CEL refuses, such as gpu.example.com/n1/gpu-0") {
		t.Errorf("notes: %v", notes)
	}
	for _, a := range list {
		switch a.Name {
		case "gpu.example.com/model":
			if a.Devices != 3 || a.Matches != 1 {
				t.Errorf("model is on %d devices, and true for %d, want 3 and 1", a.Devices, a.Matches)
			}
		case "gpu.example.com/firmware":
			if a.Expression != "" {
				t.Errorf("an expression that fails: %s", a.Expression)
			}
		}
	}
}

// TestManyValues bounds the listed values.
func TestManyValues(t *testing.T) {
	var devices []tc.DeviceWrapper
	for i := range 120 {
		devices = append(devices, tc.Device(string(rune('a'+i%26))+strings.Repeat("x", i/26)).WithInt("serial", int64(i)).Change(func(d *resourceapi.Device) {
			d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("1Gi")}}
		}))
	}
	var objects []any
	for i := range 2 {
		objects = append(objects, tc.Pool("n"+string(rune('0'+i)), devices[60*i:60*(i+1)]...))
	}
	list, _ := attributesOf(t, inventoryOf(t, tc.Cluster(objects...)), DeviceChoice{})
	for _, a := range list {
		if a.Name == "gpu.example.com/serial" && (len(a.Values) != 100 || a.MoreValues != 20 || a.DevicesWithMoreValues != 20) {
			t.Errorf("%d values, %d more on %d devices; want 100, 20, 20", len(a.Values), a.MoreValues, a.DevicesWithMoreValues)
		}
		if a.Name == "gpu.example.com/memory" && (len(a.Values) != 1 || a.Values[0].Devices != 120) {
			t.Errorf("memory: %+v", a.Values)
		}
	}
}
