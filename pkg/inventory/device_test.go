// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

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
	partitioned := tc.Pool(tc.Node1,
		tc.Device("free"), tc.Device("taken"), tc.Device("shared", "slots:=8").Shareable(),
		tc.Device("tainted").TaintedSince("example.com/broken", resourceapi.DeviceTaintEffectNoSchedule, tc.Taken().Add(-time.Hour)),
		tc.Device("noted").TaintedSince("example.com/seen", resourceapi.DeviceTaintEffectNone, tc.Taken().Add(-time.Hour)),
		tc.Device("half").Consuming("card", "memory=40Gi"), tc.Device("whole").Consuming("card", "memory=80Gi")).Of(2)
	counters := tc.Pool(tc.Node1).WithCounters("card", "memory=80Gi").Of(2)
	incomplete := tc.Pool("node-2", tc.Device("lonely"))
	incomplete.Spec.Pool.ResourceSliceCount = 2

	v := inventoryWith(t, tc.Gate("DRAConsumableCapacity", true), tc.Gate("DRAPartitionableDevices", true), tc.Gate("DRADeviceTaints", true), partitioned, counters, incomplete,
		tc.Claim("a", tc.GPUs("gpu", 1)).Holding("taken"), tc.Claim("b", tc.GPUs("gpu", 1)).Holding("shared", tc.AsShare("s1", "slots", "3")), tc.Claim("c", tc.GPUs("gpu", 1)).Holding("half"))
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
	if diff := cmp.Diff([]api.Capacity{{Name: tc.Driver + "/slots", Total: "8", Consumed: "3", Available: "5", ConsumedPercent: 38}}, shared.Capacity); diff != "" {
		t.Errorf("capacity of the shared device, -want +got:\n%s", diff)
	}
}

func TestDeviceHoldersAndHealth(t *testing.T) {
	v := inventoryWith(t, tc.Pool(tc.Node1, tc.Device("gpu-0", "model=A100", "other.example.com/root=r0"), tc.Device("gpu-1")),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p").ReservedFor("q", "uid-q").Reported("gpu-0", "", nil, "Ready=False"),
		tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1), tc.ReportedHealth("c", "gpu-0", corev1.ResourceHealthStatusUnknown, "no answer")),
		tc.Pod("q", tc.Using("c"), tc.RunningOn(tc.Node1), tc.ReportedHealth("c", "gpu-0", corev1.ResourceHealthStatusHealthy, "")),
		tc.Pod("waiting", tc.Using("c"), tc.RunningOn(tc.Node1)),
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
	if diff := cmp.Diff(map[string]string{tc.Driver + "/model": "A100", "other.example.com/root": "r0"}, d.Attributes); diff != "" {
		t.Errorf("attributes, -want +got:\n%s", diff)
	}
	if other := deviceNamed(t, v, "gpu-1"); other.Health != "" {
		t.Errorf("the health of a device of which nobody says anything is %q", other.Health)
	}
}

// TestDeviceHolderOfManyPods names some of the pods and counts them all.
func TestDeviceHolderOfManyPods(t *testing.T) {
	shared, objects := tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0"), []any{tc.Pool(tc.Node1, tc.Device("gpu-0"))}
	for i := range 14 {
		name := fmt.Sprintf("p-%02d", i)
		shared = shared.ReservedFor(name, "uid-"+name)
		objects = append(objects, tc.Pod(name, tc.Using("c"), tc.RunningOn(tc.Node1)))
	}
	d := deviceNamed(t, inventoryWith(t, append(objects, shared, tc.Pod("waiting", tc.Using("c"), tc.RunningOn(tc.Node1)))...), "gpu-0")
	if len(d.Holders) != 1 || len(d.Holders[0].Pods) != 10 || d.Holders[0].PodCount != 14 {
		t.Errorf("the holders are %+v, want ten of 14 pods", d.Holders)
	}
}

// TestHealthIsOfPodsThatUseTheDevice covers a finished pod, whose status keeps the
// kubelet's last report.
func TestHealthIsOfPodsThatUseTheDevice(t *testing.T) {
	for name, other := range map[string][]func(*corev1.Pod){
		"finished":     {tc.InPhase(corev1.PodSucceeded)},
		"failed":       {tc.InPhase(corev1.PodFailed)},
		"not reserved": {func(p *corev1.Pod) { p.Name, p.UID = "r", tc.UID("r") }},
	} {
		t.Run(name, func(t *testing.T) {
			v := inventoryWith(t, tc.Pool(tc.Node1, tc.Device("gpu-0")),
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p").ReservedFor("q", "uid-q"),
				tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1), tc.ReportedHealth("c", "gpu-0", corev1.ResourceHealthStatusHealthy, "")),
				tc.Pod("q", append(other, tc.Using("c"), tc.OnNode(tc.Node1), tc.ReportedHealth("c", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "it was then"))...))
			if d := deviceNamed(t, v, "gpu-0"); d.Health != "Healthy" {
				t.Errorf("the device is %s (%s), want Healthy, as the pod that uses it says", d.Health, d.HealthMessage)
			}
		})
	}
}
