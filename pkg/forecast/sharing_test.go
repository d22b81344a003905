// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const driver = "gpu.example.com"

// newClass returns a class of the devices of the driver with one of some types.
func newClass(name string, types ...string) *resourceapi.DeviceClass {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: fmt.Sprintf("device.driver == %q && device.attributes[%q].type in ['%s']", driver, driver, strings.Join(types, "', '")),
	}}}
	return class
}

// device returns a device of a type, which a change can modify.
func device(name, of string, change func(*resourceapi.Device)) resourceapi.Device {
	d := resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"type": {StringValue: &of}}}
	if change != nil {
		change(&d)
	}
	return d
}

// quantity returns a pointer to a quantity.
func quantity(text string) *resource.Quantity { return new(resource.MustParse(text)) }

// parts gives a device memory for several claims, with a policy.
func parts(value string, policy *resourceapi.CapacityRequestPolicy) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.AllowMultipleAllocations = new(true)
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(value), RequestPolicy: policy}}
	}
}

// takes makes a device a partition with a profile, which may be empty.
func takes(set, profile, memory string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(memory)}}}}
		if profile != "" {
			d.Attributes["profile"] = resourceapi.DeviceAttribute{StringValue: &profile}
		}
	}
}

// counters returns counter sets with 80Gi of memory each.
func counters(names ...string) []resourceapi.CounterSet {
	var sets []resourceapi.CounterSet
	for _, name := range names {
		sets = append(sets, resourceapi.CounterSet{Name: name, Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("80Gi")}}})
	}
	return sets
}

// published returns a snapshot with the devices on one node, and the classes.
func published(version string, gates []string, sets []resourceapi.CounterSet, devices []resourceapi.Device, classes ...*resourceapi.DeviceClass) *snapshot.Snapshot {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	node.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("110"), "cpu": resource.MustParse("8")}
	slice := func(name string) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: new("node-1"), Pool: resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
		}}
	}
	list := []*resourceapi.ResourceSlice{slice("devices")}
	list[0].Spec.Devices = devices
	if len(sets) > 0 {
		list = append(list, slice("sets"))
		list[1].Spec.SharedCounters = sets
		list[0].Spec.Pool.ResourceSliceCount, list[1].Spec.Pool.ResourceSliceCount = 2, 2
	}
	snapshot.SortByName(classes)
	snap := &snapshot.Snapshot{Release: snapshot.Release{ServerVersion: version, Gates: map[string]snapshot.Gate{}}, Nodes: []*corev1.Node{node}, Slices: list, Classes: classes}
	for _, gate := range gates {
		snap.Gates[gate] = snapshot.Gate{Enabled: true}
	}
	return snap
}

// ways finds the ways for a class, and returns them by method.
func ways(t *testing.T, snap *snapshot.Snapshot, class string) map[api.SharingMethod]*api.SharingWay {
	t.Helper()
	found, err := FindSharing(t.Context(), cluster.New(snap), snap.Class(class), "default")
	if err != nil {
		t.Fatal(err)
	}
	byMethod := map[api.SharingMethod]*api.SharingWay{}
	for i := range found.Ways {
		byMethod[found.Ways[i].Method] = &found.Ways[i]
	}
	if len(byMethod) != 4 {
		t.Fatalf("want 4 ways, found %+v", found.Ways)
	}
	return byMethod
}

// expectNo fails unless a way is not available for a reason, and has no manifest.
func expectNo(t *testing.T, way *api.SharingWay, reason string) {
	t.Helper()
	if way.Available || way.Reason != reason || way.Manifest != "" || way.Verdict != "" {
		t.Errorf("%s: %+v, want the reason %q", way.Method, way, reason)
	}
}

// expectFits fails unless a way is available, both pods fit, and the manifest has a text.
func expectFits(t *testing.T, way *api.SharingWay, texts ...string) {
	t.Helper()
	if !way.Available || way.Verdict != api.Fits || way.Summary != "" || way.Nodes != 1 {
		t.Errorf("%s: %+v, want that both pods fit", way.Method, way)
	}
	for _, text := range texts {
		if !strings.Contains(way.Manifest, text) {
			t.Errorf("%s: manifest without %q:\n%s", way.Method, text, way.Manifest)
		}
	}
}

func expectCount(t *testing.T, what string, got *api.CopyCount, want int) {
	t.Helper()
	if got == nil || got.AtMost == nil || got.AtLeast != want || *got.AtMost != want {
		t.Errorf("%s: %+v, want %d", what, got, want)
	}
}

const sharingRelease = "v1.37.1"

// TestOneClaim shares a plain device by one claim, and in no other way.
func TestOneClaim(t *testing.T) {
	found := ways(t, published(sharingRelease, nil, nil, []resourceapi.Device{device("gpu-0", "gpu", nil)}, newClass("gpu", "gpu")), "gpu")
	expectFits(t, found[api.SharedClaim], "kind: ResourceClaim\n", "resourceClaimName: shared-claim", "name: second")
	if found[api.SharedClaim].MostPods != 256 || found[api.SharedClaim].Now != nil {
		t.Errorf("%+v", found[api.SharedClaim])
	}
	expectNo(t, found[api.SharedCapacity], "no device of the class has allowMultipleAllocations")
	expectNo(t, found[api.SharedPartitions], "no device of the class draws on shared counters")
	expectNo(t, found[api.DriverSettings], "neither the class nor a claim or template for it has parameters for a driver")
}

// TestNoDevices looks for ways in a class that selects nothing.
func TestNoDevices(t *testing.T) {
	found := ways(t, published(sharingRelease, nil, nil, []resourceapi.Device{device("gpu-0", "gpu", nil)}, newClass("other", "other"), newClass("gpu", "gpu")), "other")
	for _, method := range []api.SharingMethod{api.SharedClaim, api.SharedCapacity, api.SharedPartitions} {
		expectNo(t, found[method], "the class selects no devices now")
	}
}

// TestDeviceInUse puts a claim on the only device: the way is there, and nothing fits now.
func TestDeviceInUse(t *testing.T) {
	snap := published(sharingRelease, nil, nil, []resourceapi.Device{device("gpu-0", "gpu", nil)}, newClass("gpu", "gpu"))
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared-claim", UID: "1"}}
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	claim.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: "node-1", Device: "gpu-0"}}
	snap.Claims = []*resourceapi.ResourceClaim{claim}
	way := ways(t, snap, "gpu")[api.SharedClaim]
	if !way.Available || way.Verdict != api.DoesNotFit || way.Summary == "" || way.Nodes != 0 || way.NodeCount != 1 {
		t.Errorf("%+v", way)
	}
	// The name is in use.
	if !strings.Contains(way.Manifest, "resourceClaimName: shared-claim-2\n") {
		t.Error(way.Manifest)
	}
}

// TestCapacity counts claims for the default, for the smallest amount, and for half of a capacity without
// a policy.
func TestCapacity(t *testing.T) {
	gates := []string{cluster.GateConsumableCapacity}
	ranged := &resourceapi.CapacityRequestPolicy{Default: quantity("20Gi"), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity("5Gi"), Max: quantity("80Gi")}}
	greedy := &resourceapi.CapacityRequestPolicy{Default: quantity("80Gi"), ValidValues: []resource.Quantity{*quantity("10Gi"), *quantity("80Gi")}}
	for name, test := range map[string]struct {
		change            func(*resourceapi.Device)
		defaults          int
		smallest          int
		asks, doesNotHave string
	}{
		"the default leaves room":      {parts("80Gi", ranged), 4, 16, "", "capacity:"},
		"the default takes the device": {parts("80Gi", greedy), 1, 8, "memory: 10Gi", ""},
		"no policy":                    {parts("80Gi", nil), 1, 2, "memory: 40Gi", ""},
	} {
		t.Run(name, func(t *testing.T) {
			way := ways(t, published(sharingRelease, gates, nil, []resourceapi.Device{device("gpu-0", "gpu", test.change)}, newClass("gpu", "gpu")), "gpu")[api.SharedCapacity]
			expectFits(t, way, "kind: ResourceClaimTemplate", test.asks)
			if len(way.Kinds) != 1 {
				t.Fatalf("%+v", way.Kinds)
			}
			expectCount(t, "default", &way.Kinds[0].Claims, test.defaults)
			expectCount(t, "smallest", way.Kinds[0].SmallestClaims, test.smallest)
			expectCount(t, "now", way.Now, max(test.defaults, map[bool]int{true: test.smallest}[test.defaults == 1]))
			if test.doesNotHave != "" && strings.Contains(way.Manifest, test.doesNotHave) {
				t.Errorf("manifest with %q:\n%s", test.doesNotHave, way.Manifest)
			}
		})
	}
}

// TestUnlimited shares a device that publishes no capacity with any number of claims.
func TestUnlimited(t *testing.T) {
	gates := []string{cluster.GateConsumableCapacity}
	way := ways(t, published(sharingRelease, gates, nil, []resourceapi.Device{device("gpu-0", "gpu", func(d *resourceapi.Device) { d.AllowMultipleAllocations = new(true) })}, newClass("gpu", "gpu")), "gpu")[api.SharedCapacity]
	expectFits(t, way)
	if kind := way.Kinds[0]; kind.Claims.AtMost != nil || kind.Claims.AtLeast < 100 || kind.SmallestClaims != nil {
		t.Errorf("%+v", kind)
	}
}

// TestCapacityOfSome puts a device that can be shared beside another: the claims of the manifest must not
// get that.
func TestCapacityOfSome(t *testing.T) {
	gates := []string{cluster.GateConsumableCapacity}
	policy := &resourceapi.CapacityRequestPolicy{Default: quantity("40Gi")}
	whole := device("gpu-0", "gpu", func(d *resourceapi.Device) {
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}
	})
	way := ways(t, published(sharingRelease, gates, nil, []resourceapi.Device{whole, device("gpu-1", "gpu", parts("80Gi", policy))}, newClass("gpu", "gpu")), "gpu")[api.SharedCapacity]
	expectFits(t, way, "expression: device.allowMultipleAllocations\n")
	if way.Devices != 1 {
		t.Errorf("%d devices, want 1", way.Devices)
	}
	expectCount(t, "now", way.Now, 2)
}

// TestGatesOff looks at devices that could be shared, on a release where the features are off by default.
func TestGatesOff(t *testing.T) {
	devices := []resourceapi.Device{
		device("gpu-0", "gpu", parts("80Gi", nil)),
		device("part-0", "gpu", takes("card-0", "half", "40Gi")),
		device("part-1", "gpu", takes("card-0", "half", "40Gi")),
	}
	found := ways(t, published("v1.35.0", nil, counters("card-0"), devices, newClass("gpu", "gpu")), "gpu")
	expectNo(t, found[api.SharedCapacity], "1 device has allowMultipleAllocations, and feature gate DRAConsumableCapacity is off")
	expectNo(t, found[api.SharedPartitions], "2 devices have shared counters, and feature gate DRAPartitionableDevices is off")
	if got := [2]string{found[api.SharedCapacity].FeatureGate, found[api.SharedPartitions].FeatureGate}; got != [2]string{cluster.GateConsumableCapacity, cluster.GatePartitionableDevices} {
		t.Errorf("feature gates %v", got)
	}
}

// TestTainted counts the devices that claims without tolerations do not get.
func TestTainted(t *testing.T) {
	tainted := func(effect resourceapi.DeviceTaintEffect) func(*resourceapi.Device) {
		return func(d *resourceapi.Device) {
			parts("80Gi", nil)(d)
			d.Taints = []resourceapi.DeviceTaint{{Key: "link", Effect: resourceapi.DeviceTaintEffectNone}, {Key: "link", Value: "down", Effect: effect}}
		}
	}
	devices := []resourceapi.Device{
		device("gpu-0", "gpu", tainted(resourceapi.DeviceTaintEffectNoSchedule)), device("gpu-1", "gpu", tainted(resourceapi.DeviceTaintEffectNoExecute)),
		device("gpu-2", "gpu", tainted(resourceapi.DeviceTaintEffectNone)), device("gpu-3", "gpu", parts("80Gi", nil)), device("other", "other", tainted(resourceapi.DeviceTaintEffectNoExecute)),
	}
	for want, gates := range map[int][]string{2: {cluster.GateDeviceTaints}, 0: nil} {
		class := newClass("gpu", "gpu")
		found, err := FindSharing(t.Context(), cluster.New(published("v1.35.0", gates, nil, devices, class)), class, "ml")
		if err != nil || found.Tainted != want {
			t.Errorf("with gates %v: %+v, %v, want %d tainted", gates, found, err, want)
		}
	}
}

// TestPartitions divides cards into halves and quarters. A half is in use.
func TestPartitions(t *testing.T) {
	gates := []string{cluster.GatePartitionableDevices}
	var devices []resourceapi.Device
	for _, card := range []string{"card-0", "card-1"} {
		devices = append(devices, device(card, "gpu", takes(card, "", "80Gi")))
		for i := range 2 {
			devices = append(devices, device(fmt.Sprintf("%s-half-%d", card, i), "part", takes(card, "half", "40Gi")))
		}
		for i := range 4 {
			devices = append(devices, device(fmt.Sprintf("%s-quarter-%d", card, i), "part", takes(card, "quarter", "20Gi")))
		}
	}
	snap := published(sharingRelease, gates, counters("card-0", "card-1"), devices, newClass("part", "part"), newClass("gpu", "gpu"), newClass("alias", "gpu"), newClass("all", "part", "gpu"))
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "half", UID: "1"}}
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	claim.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: "node-1", Device: "card-0-half-0"}}
	snap.Claims = []*resourceapi.ResourceClaim{claim}
	way := ways(t, snap, "part")[api.SharedPartitions]
	expectFits(t, way, `expression: device.attributes["gpu.example.com"].profile == "quarter"`)
	if len(way.Kinds) != 2 || way.Kinds[0].Profile != "quarter" || way.Kinds[1].Profile != "half" || way.Kinds[0].Attribute != "gpu.example.com/profile" {
		t.Fatalf("%+v", way.Kinds)
	}
	expectCount(t, "quarters of one card", &way.Kinds[0].Claims, 4)
	expectCount(t, "halves of one card", &way.Kinds[1].Claims, 2)
	expectCount(t, "quarters now", way.Now, 6)
	expectCount(t, "quarters once released", way.Released, 8)

	// Whole cards draw on the counters, too, and are no partitions: the other class has these.
	whole := ways(t, snap, "gpu")[api.SharedPartitions]
	// The class alias selects nothing but whole cards.
	expectNo(t, whole, "the counters of a device are enough for one device of the class only")
	if !slices.Equal(whole.OtherClasses, []string{"all", "part"}) {
		t.Errorf("%v, want classes all and part", whole.OtherClasses)
	}
}

// TestMixedClass finds the partitions of a class that has plain devices without the attribute, on which
// the expression must not fail.
func TestMixedClass(t *testing.T) {
	gates := []string{cluster.GatePartitionableDevices}
	devices := []resourceapi.Device{device("plain", "gpu", func(d *resourceapi.Device) {
		d.Attributes["profile"] = resourceapi.DeviceAttribute{StringValue: new("half")}
	})}
	for i := range 2 {
		devices = append(devices, device(fmt.Sprint("part-", i), "gpu", takes("card-0", "half", "40Gi")))
	}
	// A plain device has the same value: no expression tells the partitions.
	way := ways(t, published(sharingRelease, gates, counters("card-0"), devices, newClass("gpu", "gpu")), "gpu")[api.SharedPartitions]
	if !way.Available || strings.Contains(way.Manifest, "expression") || !slices.Equal(way.Notes, []string{"no attribute tells the profiles apart: the claims of the manifest get any device of the class"}) {
		t.Errorf("%v\n%s", way.Notes, way.Manifest)
	}
	delete(devices[0].Attributes, "profile")
	way = ways(t, published(sharingRelease, gates, counters("card-0"), devices, newClass("gpu", "gpu")), "gpu")[api.SharedPartitions]
	expectFits(t, way, "has(device.attributes[\"gpu.example.com\"].profile) &&")
	expectCount(t, "now", way.Now, 2)
}

// TestPartitionsWithoutNames counts partitions that nothing but their counters describes.
func TestPartitionsWithoutNames(t *testing.T) {
	gates := []string{cluster.GatePartitionableDevices}
	var devices []resourceapi.Device
	for i := range 4 {
		devices = append(devices, device(fmt.Sprint("part-", i), "part", takes("card-0", "", "20Gi")))
	}
	way := ways(t, published(sharingRelease, gates, counters("card-0"), devices, newClass("part", "part")), "part")[api.SharedPartitions]
	expectFits(t, way)
	if kind := way.Kinds[0]; kind.Profile != "20Gi memory" || kind.Attribute != "" || kind.Claims.AtLeast != 4 || strings.Contains(way.Manifest, "expression") {
		t.Errorf("%+v\n%s", kind, way.Manifest)
	}
}

// TestSettings finds parameters of classes, templates and claims for a class, and no others.
func TestSettings(t *testing.T) {
	snap := published(sharingRelease, nil, nil, []resourceapi.Device{device("gpu-0", "gpu", nil)}, newClass("gpu", "gpu"), newClass("other", "other"))
	opaque := func(of, strategy string) resourceapi.DeviceConfiguration {
		config := &resourceapi.OpaqueDeviceConfiguration{Driver: of}
		config.Parameters.Raw = []byte(`{"kind":"Config","sharing":{"strategy":"` + strategy + `","more":{}}}`)
		return resourceapi.DeviceConfiguration{Opaque: config}
	}
	spec := func(class string, config ...resourceapi.DeviceClaimConfiguration) resourceapi.ResourceClaimSpec {
		return resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "own", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}}, {Name: "others", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "other"}}},
			Config:   config,
		}}
	}
	claim := func(name string, spec resourceapi.ResourceClaimSpec) *resourceapi.ResourceClaim {
		return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Spec: spec}
	}
	settings := func() *api.SharingWay {
		t.Helper()
		return ways(t, snap, "gpu")[api.DriverSettings]
	}

	snap.Claims = []*resourceapi.ResourceClaim{
		claim("another-driver", spec("gpu", resourceapi.DeviceClaimConfiguration{DeviceConfiguration: opaque("nic.example.com", "A")})),
		claim("another-request", spec("gpu", resourceapi.DeviceClaimConfiguration{Requests: []string{"others"}, DeviceConfiguration: opaque(driver, "B")})),
		claim("another-class", spec("other", resourceapi.DeviceClaimConfiguration{DeviceConfiguration: opaque(driver, "C")})),
	}
	expectNo(t, settings(), "neither the class nor a claim or template for it has parameters for a driver")

	snap.Classes[0].Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: opaque(driver, "TimeSlicing")}}
	way := settings()
	if !way.Available || way.Manifest != "" || len(way.Settings) != 1 || way.Settings[0].Objects[0].Title() != "DeviceClass gpu" {
		t.Errorf("%+v", way)
	}

	snap.Claims = append(snap.Claims,
		claim("one", spec("gpu", resourceapi.DeviceClaimConfiguration{DeviceConfiguration: opaque(driver, "MPS")})),
		claim("two", spec("gpu", resourceapi.DeviceClaimConfiguration{Requests: []string{"own"}, DeviceConfiguration: opaque(driver, "MPS")})))
	way = settings()
	expectFits(t, way, "    - opaque:\n        driver: gpu.example.com\n        parameters:\n          kind: Config\n          sharing:\n            more: {}\n            strategy: MPS\n      requests:\n      - device\n")
	if len(way.Settings) != 2 || way.Settings[1].Count != 2 || way.Settings[1].Objects[1].Title() != "ResourceClaim ml/two" {
		t.Errorf("%+v", way.Settings)
	}
}

// TestOtherPodsWait lets a pod wait for the only device: whether another fits now does not depend on that.
func TestOtherPodsWait(t *testing.T) {
	snap := published(sharingRelease, nil, nil, []resourceapi.Device{device("gpu-0", "gpu", nil)}, newClass("gpu", "gpu"))
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gpu"}}
	template.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "waits", UID: "1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
	snap.Templates, snap.Pods = []*resourceapi.ResourceClaimTemplate{template}, []*corev1.Pod{pod}
	expectFits(t, ways(t, snap, "gpu")[api.SharedClaim])
}
