// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func deviceNamed(t *testing.T, v *Inventory, name string) api.Device {
	t.Helper()
	for _, d := range v.Devices() {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("there is no device %s", name)
	return api.Device{}
}

func TestDeviceStates(t *testing.T) {
	half := func(d *resourceapi.Device) {
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("40Gi")}}}}
	}
	whole := func(d *resourceapi.Device) {
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("80Gi")}}}}
	}
	partitioned := slice(node1,
		device("free"), device("taken"), device("shared", tc.Shareable, tc.WithCapacity("slots", "8")),
		device("tainted", withTaint("example.com/broken", resourceapi.DeviceTaintEffectNoSchedule)),
		device("noted", withTaint("example.com/seen", resourceapi.DeviceTaintEffectNone)),
		device("half", half), device("whole", whole))
	counters := slice(node1)
	counters.Name += "-counters"
	counters.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("80Gi")}}}}
	partitioned.Spec.Pool.ResourceSliceCount, counters.Spec.Pool.ResourceSliceCount = 2, 2
	incomplete := slice("node-2", device("lonely"))
	incomplete.Spec.Pool.ResourceSliceCount = 2

	v := inventoryWith(t, gate("DRAConsumableCapacity"), gate("DRAPartitionableDevices"), gate("DRADeviceTaints"), partitioned, counters, incomplete,
		claim("a").has("taken"), claim("b").has("shared", share("s1", "slots", "3")), claim("c").has("half"))
	got := map[string]string{}
	for _, d := range v.Devices() {
		got[d.Name] = string(d.State)
		if d.Reason != "" {
			got[d.Name] += ": " + d.Reason
		}
	}
	want := map[string]string{
		"free": "Free", "taken": "Allocated", "shared": "Shared", "half": "Allocated", "noted": "Free",
		"tainted": "Tainted: example.com/broken:NoSchedule",
		"whole":   "Blocked: needs 80Gi of counter memory, 40Gi of 80Gi available",
		"lonely":  "Unusable: the pool is incomplete: 1 of 2 slices",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	shared := deviceNamed(t, v, "shared")
	if diff := cmp.Diff([]api.Capacity{{Name: driver + "/slots", Total: "8", Consumed: "3", Available: "5", ConsumedPercent: 38}}, shared.Capacity); diff != "" {
		t.Errorf("capacity of the shared device, -want +got:\n%s", diff)
	}
}

func TestDeviceHoldersAndHealth(t *testing.T) {
	v := inventoryWith(t, slice(node1, device("gpu-0", tc.WithAttribute("model", "A100"), tc.WithAttribute("other.example.com/root", "r0")), device("gpu-1")),
		claim("c").has("gpu-0").reservedFor("p", "uid-p").reservedFor("q", "uid-q").says("gpu-0", "", nil, "Ready=False"),
		pod("p", "c").reports("c", "gpu-0", corev1.ResourceHealthStatusUnknown, "no answer"),
		pod("q", "c").reports("c", "gpu-0", corev1.ResourceHealthStatusHealthy, ""),
		pod("waiting", "c"),
	)
	d := deviceNamed(t, v, "gpu-0")
	if d.Health != "Unknown" || d.HealthMessage != "no answer" {
		t.Errorf("the health is %s (%s), want the worst: Unknown", d.Health, d.HealthMessage)
	}
	if len(d.Holders) != 1 || d.Holders[0].Claim != "c" || len(d.Holders[0].Pods) != 2 {
		t.Fatalf("the holders are %+v, want claim c with two pods", d.Holders)
	}
	if status := d.Holders[0].Status; status == nil || len(status.Odd) != 1 || status.Odd[0] != "Ready" {
		t.Errorf("the status is %+v, want Ready to be odd", status)
	}
	if diff := cmp.Diff(map[string]string{driver + "/model": "A100", "other.example.com/root": "r0"}, d.Attributes); diff != "" {
		t.Errorf("attributes, -want +got:\n%s", diff)
	}
	if other := deviceNamed(t, v, "gpu-1"); other.Health != "" {
		t.Errorf("the health of a device of which nobody says anything is %q", other.Health)
	}
}

// TestDeviceHolderOfManyPods names some of the pods and counts them all.
func TestDeviceHolderOfManyPods(t *testing.T) {
	shared, objects := claim("c").has("gpu-0"), []any{slice(node1, device("gpu-0"))}
	for i := range 14 {
		name := fmt.Sprintf("p-%02d", i)
		shared = shared.reservedFor(name, "uid-"+name)
		objects = append(objects, pod(name, "c"))
	}
	d := deviceNamed(t, inventoryWith(t, append(objects, shared, pod("waiting", "c"))...), "gpu-0")
	if len(d.Holders) != 1 || len(d.Holders[0].Pods) != 10 || d.Holders[0].PodCount != 14 {
		t.Errorf("the holders are %+v, want ten of 14 pods", d.Holders)
	}
}

// What a kubelet said last stays in the status of a pod that finished.
func TestHealthIsOfPodsThatUseTheDevice(t *testing.T) {
	for name, other := range map[string]wrapPod{
		"finished":     pod("q", "c").in(corev1.PodSucceeded),
		"failed":       pod("q", "c").in(corev1.PodFailed),
		"not reserved": pod("r", "c"),
	} {
		t.Run(name, func(t *testing.T) {
			v := inventoryWith(t, slice(node1, device("gpu-0")),
				claim("c").has("gpu-0").reservedFor("p", "uid-p").reservedFor("q", "uid-q"),
				pod("p", "c").reports("c", "gpu-0", corev1.ResourceHealthStatusHealthy, ""),
				other.reports("c", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "it was then"))
			if d := deviceNamed(t, v, "gpu-0"); d.Health != "Healthy" {
				t.Errorf("the device is %s (%s), want Healthy, as the pod that uses it says", d.Health, d.HealthMessage)
			}
		})
	}
}
