// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// mixed returns a cluster of three nodes with two GPUs each, of which the first of each and
// the second of the first node are allocated; the last node has two NICs besides. Classes
// are given by their selectors.
func mixed(expressions map[string][]string) *snapshot.Snapshot {
	snap := fleet.Fleet(3, 2, 4)
	nics := snap.Slices[2].DeepCopy()
	nics.Name, nics.Spec.Driver = "nics", "nic.example.com"
	for i := range nics.Spec.Devices {
		d := &nics.Spec.Devices[i]
		d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"speed": {IntValue: ptr.To(int64(100 * i))}}
	}
	snap.Slices = append(snap.Slices, nics)
	for name, list := range expressions {
		snap.Classes = append(snap.Classes, deviceClass(name, list...))
	}
	slices.SortFunc(snap.Classes, func(a, b *resourceapi.DeviceClass) int { return strings.Compare(a.Name, b.Name) })
	return snap
}

func deviceClass(name string, expressions ...string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{Selectors: celSelectors(expressions...)}}
}

func celSelectors(expressions ...string) []resourceapi.DeviceSelector {
	var list []resourceapi.DeviceSelector
	for _, expression := range expressions {
		list = append(list, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return list
}

// inventoryWith makes the inventory of a cluster. When the test ends, the snapshot
// must be as it was.
func inventoryWith(t *testing.T, objects ...any) *Inventory {
	t.Helper()
	snap := tc.Cluster(objects...)
	tc.Unchanged(t, snap)
	return inventoryOf(t, snap)
}

func inventoryOf(t *testing.T, snap *snapshot.Snapshot) *Inventory {
	t.Helper()
	c := cluster.New(snap)
	return New(c)
}

func TestClasses(t *testing.T) {
	const gpu, nic = `device.driver == "gpu.example.com"`, `device.driver == "nic.example.com"`
	snap := mixed(map[string][]string{
		"all":      nil,
		"nic":      {nic},
		"fast":     {nic, `device.attributes["nic.example.com"].speed >= 100`},
		"none":     {`device.driver == "gpu.exampel.com"`},
		"careless": {`device.attributes["nic.example.com"].speed >= 100`},
		"broken":   {gpu, `device.driver ==`},
	})
	classes, err := inventoryOf(t, snap).Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]api.Class{}
	for _, class := range classes {
		got[class.Name] = class
	}
	for name, want := range map[string]api.Class{
		"all":       {Devices: 8, Free: 4, Drivers: []string{"gpu.example.com", "nic.example.com"}},
		"nic":       {Devices: 2, Free: 2, Drivers: []string{"nic.example.com"}},
		"fast":      {Devices: 1, Free: 1, Drivers: []string{"nic.example.com"}},
		"none":      {},
		fleet.Class: {Devices: 6, Free: 2, Claims: 4, Allocated: 4, Drivers: []string{"gpu.example.com"}},
		"careless":  {Devices: 1, Free: 1, Drivers: []string{"nic.example.com"}, Failing: 6},
		"broken":    {Failing: 6},
	} {
		class := got[name]
		if class.Devices != want.Devices || class.Free != want.Free || class.Failing != want.Failing ||
			class.Claims != want.Claims || class.Allocated != want.Allocated || !slices.Equal(class.Drivers, want.Drivers) {
			t.Errorf("class %s is %+v, want %+v", name, class, want)
		}
	}
	careless := got["careless"]
	if want := "selector 1: no such key: speed (on gpu.example.com/node-00000/gpu-0 and 5 more)"; careless.Failure != want {
		t.Errorf("failure %q, want %q", careless.Failure, want)
	}
	if f := careless.Failures; len(f) != 1 || f[0].Error != "selector 1: no such key: speed" || f[0].Count != 6 || len(f[0].Devices) != 6 || f[0].Devices[5] != "gpu.example.com/node-00002/gpu-1" {
		t.Errorf("failures %+v", f)
	}
	if failure := got["broken"].Failure; !strings.HasPrefix(failure, "selector 2: compilation failed: ") || strings.Contains(failure, "\n") {
		t.Errorf("failure %q", failure)
	}
}

// TestClassFailures tells different errors apart, each with its devices.
func TestClassFailures(t *testing.T) {
	snap := mixed(map[string][]string{"two": {`device.driver == "gpu.example.com" ? device.attributes["gpu.example.com"].color == "red" : device.attributes["nic.example.com"].size == 1`}})
	classes, err := inventoryOf(t, snap).Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	two := classes[slices.IndexFunc(classes, func(c api.Class) bool { return c.Name == "two" })]
	if two.Failing != 8 || len(two.Failures) != 2 {
		t.Fatalf("%d fail: %+v", two.Failing, two.Failures)
	}
	for i, want := range []string{
		"selector 1: no such key: color (on gpu.example.com/node-00000/gpu-0 and 5 more)",
		"selector 1: no such key: size (on nic.example.com/node-00002/gpu-0 and 1 more)",
	} {
		if got := FailureText(&two.Failures[i]); got != want {
			t.Errorf("failure %d is %q, want %q", i, got, want)
		}
	}
}

// TestPluginNodes finds nodes where a device plugin has what a class serves.
func TestPluginNodes(t *testing.T) {
	snap := mixed(map[string][]string{"served": {`true`}, "other": {`true`}})
	for _, class := range snap.Classes {
		if class.Name == "served" {
			class.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
		}
	}
	for i, name := range []string{"example.com/gpu", resourceapi.ResourceDeviceClassPrefix + "served", "example.com/gpu"} {
		snap.Nodes[i].Status.Allocatable = corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(int64(2-i), resource.DecimalSI)}
	}
	classes, err := inventoryOf(t, snap).Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range classes {
		var want []string
		if class.Name == "served" {
			// The third has none of it.
			want = []string{"node-00000", "node-00001"}
		}
		if !slices.Equal(class.PluginNodes, want) {
			t.Errorf("class %s: plugins on %q, want %q", class.Name, class.PluginNodes, want)
		}
	}
}

func TestChoose(t *testing.T) {
	v := inventoryOf(t, mixed(nil))
	devices, failures, err := v.Choose(t.Context(), celSelectors(`device.driver != "other"`, `device.attributes["gpu.example.com"].numa == 0`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range devices {
		names = append(names, devices[i].String())
	}
	if want := "gpu.example.com/node-00000/gpu-0 gpu.example.com/node-00000/gpu-1 gpu.example.com/node-00001/gpu-0 gpu.example.com/node-00001/gpu-1 gpu.example.com/node-00002/gpu-0 gpu.example.com/node-00002/gpu-1"; strings.Join(names, " ") != want {
		t.Errorf("chosen are %s", names)
	}
	if len(failures) != 1 || FailureText(&failures[0]) != "selector 2: no such key: numa (on nic.example.com/node-00002/gpu-0 and 1 more)" {
		t.Errorf("failures %+v", failures)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := v.Choose(ctx, celSelectors(`true`)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestChooseAgreesWithTheAllocator asks the allocator for one device that matches
// wherever one is chosen, and in vain where none is.
func TestChooseAgreesWithTheAllocator(t *testing.T) {
	snap := mixed(map[string][]string{"all": nil})
	v := inventoryOf(t, snap)
	for _, expression := range []string{
		`device.driver == "nic.example.com"`,
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].uuid.endsWith("0")`,
		`device.driver == "nic.example.com" && device.attributes["nic.example.com"].speed > 100`,
		`"gpu.example.com" in device.attributes && device.attributes["gpu.example.com"].numa == 0`,
	} {
		devices, _, err := v.Choose(t.Context(), celSelectors(expression))
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range snap.Nodes {
			free := slices.ContainsFunc(devices, func(id cluster.DeviceID) bool {
				d, ok := v.Device(id)
				return ok && d.Node == node.Name && d.State == api.DeviceStateFree
			})
			claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "new", UID: "new"}}
			claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: "all", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1, Selectors: celSelectors(expression),
			}}}
			if verdict := allocator.Of(v.cluster).Check(t.Context(), node, []*resourceapi.ResourceClaim{claim}); (verdict.Outcome == allocator.Fits) != free {
				t.Errorf("%s on %s: free %v, the allocator says %s (%v)", expression, node.Name, free, verdict.Outcome, verdict.Err)
			}
		}
	}
}

// Of alternatives, the class counts that was taken.
func TestClassesOfAlternatives(t *testing.T) {
	c := tc.Claim("c", tc.GPUs("gpu", 1)).Change(func(c *resourceapi.ResourceClaim) {
		c.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpu", FirstAvailable: []resourceapi.DeviceSubRequest{
			{Name: "big", DeviceClassName: "big"}, {Name: "small", DeviceClassName: tc.ClassGPU},
		}}}
	}).Holding("gpu-0", func(r *resourceapi.DeviceRequestAllocationResult) { r.Request = "gpu/small" })
	v := inventoryWith(t, tc.Gate("DRAPrioritizedList", true), tc.Pool(tc.Node1, tc.Device("gpu-0")), tc.ClassWhere("big", "false"), c)
	classes, err := v.Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range classes {
		if want := map[string]int{"big": 0, tc.ClassGPU: 1}[c.Name]; c.Claims != 1 || c.Allocated != want {
			t.Errorf("class %s has %d claims, %d of them with devices of it, want 1 and %d", c.Name, c.Claims, c.Allocated, want)
		}
	}
}
