// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestClaimStates(t *testing.T) {
	v := inventoryWith(t, tc.Pool(tc.Node1, tc.NamedDevices("gpu-0", "gpu-1", "gpu-2")...),
		tc.Claim("a-pending", tc.GPUs("gpu", 1)),
		tc.Claim("b-allocated", tc.GPUs("gpu", 1)).Holding("gpu-0"),
		tc.Claim("c-reserved", tc.GPUs("gpu", 1)).Holding("gpu-1").ReservedFor("train", "uid-train"), tc.Pod("train", tc.Using("c-reserved"), tc.RunningOn(tc.Node1)),
		tc.Claim("d-deleting", tc.GPUs("gpu", 1)).Holding("gpu-2").ReservedFor("eval", "uid-eval").Deleted(), tc.Pod("eval", tc.Using("d-deleting"), tc.RunningOn(tc.Node1)),
	)
	var got []string
	for _, c := range v.Claims() {
		got = append(got, fmt.Sprintf("%s %s on %q for %v", c.Name, c.State, c.Node, c.ReservedFor))
	}
	want := []string{
		`a-pending Pending on "" for []`,
		`b-allocated Allocated on "node-1" for []`,
		`c-reserved Reserved on "node-1" for [Pod/ml/train]`,
		`d-deleting Deleting on "node-1" for [Pod/ml/eval]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// flagsOf lists the flags of a claim with their messages.
func flagsOf(v *Inventory, name string) []string {
	var flags []string
	for _, c := range v.Claims() {
		if c.Name != name {
			continue
		}
		for _, f := range c.Flags {
			flags = append(flags, string(f.Name)+": "+f.Message)
		}
	}
	return flags
}

func TestClaimFlags(t *testing.T) {
	bindingGates := []any{tc.Gate("DRADeviceBindingConditions", true), tc.Gate("DRAResourceClaimDeviceStatus", true)}
	for name, test := range map[string]struct {
		objects []any
		want    []string
	}{
		"nothing odd": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1))},
		},
		"unreserved": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0")},
			want:    []string{"Unreserved: it has devices, but is reserved for nobody"},
		},
		"waiting for a pod": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1))},
			want:    []string{"WaitingForPod: no pod uses it, and the scheduler allocates claims for pods only"},
		},
		"waiting for a pod that may be hidden": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)), snapshot.Gap{Resource: snapshot.ResourcePods, Reason: "forbidden"}},
		},
		"orphaned": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).OwnedBy("Pod", "p")},
			want:    []string{"Orphaned: it was made for pod p, which does not exist any more"},
		},
		"orphaned by a pod of the same name": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).OwnedBy("Pod", "p").Change(func(c *resourceapi.ResourceClaim) { c.OwnerReferences[0].UID = "uid-earlier" }), tc.Pod("p")},
			want:    []string{"Orphaned: it was made for pod p, which does not exist any more"},
		},
		"owned by a hidden pod": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).OwnedBy("Pod", "p"), snapshot.Gap{Resource: snapshot.ResourcePods, Reason: "forbidden"}},
		},
		"deleting, held by a pod": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p").Deleted("resource.kubernetes.io/delete-protection"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1))},
			want:    []string{"Held: its deletion waits for pod/p"},
		},
		"deleting, held by a finalizer": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Deleted("example.com/audit")},
			want:    []string{"Held: its deletion waits for finalizer example.com/audit"},
		},
		"reserved for a finished pod": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1), tc.InPhase(corev1.PodSucceeded))},
			want:    []string{"StaleReservation: it is reserved for pod p, which is finished"},
		},
		"reserved for a pod that is gone": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p")},
			want:    []string{"StaleReservation: it is reserved for pod p, which does not exist any more"},
		},
		"reserved for another pod of the same name": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-earlier"), tc.Pod("p", tc.Using("c"))},
			want:    []string{"StaleReservation: it is reserved for pod p, which was replaced by another one of the same name"},
		},
		"reserved for something else": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").Change(func(c *resourceapi.ResourceClaim) {
				c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{APIGroup: "example.com", Resource: "jobs", Name: "j", UID: "uid-j"}}
			})},
		},
		"device gone": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-9").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1))},
			want:    []string{"DeviceGone: device gpu.example.com/node-1/gpu-9 is no longer in any ResourceSlice"},
		},
		"device of an earlier generation while the driver replaces its slices": {
			objects: []any{
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-9").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)),
				tc.Slice("earlier", tc.Driver, tc.Node1, tc.NamedDevices("gpu-9")...), tc.Slice(tc.Node1+"-new", tc.Driver, tc.Node1, tc.NamedDevices("gpu-8")...).Generation(2).Of(2),
			},
		},
		"device of an earlier generation": {
			objects: []any{
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-9").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)),
				tc.Slice("earlier", tc.Driver, tc.Node1, tc.NamedDevices("gpu-9")...), tc.Slice(tc.Node1+"-new", tc.Driver, tc.Node1, tc.NamedDevices("gpu-8")...).Generation(2).Of(1),
			},
			want: []string{"DeviceGone: the newest generation of its pool does not have device gpu.example.com/node-1/gpu-9 any more"},
		},
		"device of a hidden slice": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-9").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)), snapshot.Gap{Resource: snapshot.ResourceSlices, Reason: "forbidden"}},
		},
		"device twice": {
			objects: []any{
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)),
				tc.Claim("d", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("q", "uid-q"), tc.Pod("q", tc.Using("d"), tc.RunningOn(tc.Node1)),
			},
			want: []string{"DeviceTwice: device gpu.example.com/node-1/gpu-0 is allocated twice: to claim ml/c and to claim ml/d"},
		},
		"device twice in one claim": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").Holding("gpu-0").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1))},
			want:    []string{"DeviceTwice: device gpu.example.com/node-1/gpu-0 is allocated to this claim more than once"},
		},
		"device shared by another": {
			objects: []any{
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("nic-0").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)),
				tc.Claim("d", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s2", "bandwidth", "10G")).ReservedFor("q", "uid-q"), tc.Pod("q", tc.Using("d"), tc.RunningOn(tc.Node1)),
			},
			want: []string{"DeviceTwice: device gpu.example.com/node-1/nic-0 is allocated twice: to claim ml/c and to claim ml/d"},
		},
		"device shared, and another has all of it": {
			objects: []any{
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s2", "bandwidth", "10G")).ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)),
				tc.Claim("d", tc.GPUs("gpu", 1)).Holding("nic-0").ReservedFor("q", "uid-q"), tc.Pod("q", tc.Using("d"), tc.RunningOn(tc.Node1)),
			},
			want: []string{"DeviceTwice: device gpu.example.com/node-1/nic-0 is allocated twice: to claim ml/c and to claim ml/d"},
		},
		"device shared beyond its capacity": {
			objects: []any{
				tc.Gate("DRAConsumableCapacity", true),
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s1", "bandwidth", "60G")).Holding("nic-0", tc.AsShare("s3", "bandwidth", "50G")).ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)),
				tc.Claim("d", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s2", "bandwidth", "10G")).ReservedFor("q", "uid-q"), tc.Pod("q", tc.Using("d"), tc.RunningOn(tc.Node1)),
			},
			want: []string{"DeviceTwice: shares of device gpu.example.com/node-1/nic-0 take 120G of capacity gpu.example.com/bandwidth, which is 100G"},
		},
		"device shared": {
			objects: []any{
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s1", "bandwidth", "10G")).ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)),
				tc.Claim("d", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s2", "bandwidth", "10G")).ReservedFor("q", "uid-q"), tc.Pod("q", tc.Using("d"), tc.RunningOn(tc.Node1)),
			},
		},
		"device watched by an admin": {
			objects: []any{
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)),
				tc.Claim("d", tc.GPUs("gpu", 1)).Holding("gpu-0", func(r *resourceapi.DeviceRequestAllocationResult) { r.AdminAccess = ptr.To(true) }).ReservedFor("q", "uid-q"), tc.Pod("q", tc.Using("d"), tc.RunningOn(tc.Node1)),
			},
		},
		"device not ready": {
			objects: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p").Reported("gpu-0", "", nil, "Ready=False", "Configured=True", "Degraded=False"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1))},
			want:    []string{"DeviceCondition: driver gpu.example.com reports that device gpu.example.com/node-1/gpu-0 is not ready: Because: so it is"},
		},
		"device unhealthy": {
			objects: []any{
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p"),
				tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1), tc.ReportedHealth("c", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "it fell off the bus")),
			},
			want: []string{"DeviceUnhealthy: device gpu.example.com/node-1/gpu-0 is unhealthy: it fell off the bus"},
		},
		"binding, nothing said": {
			objects: append(bindingGates, tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0", tc.AwaitingBinding("Attached", "AttachFailed")), tc.Pod("p", tc.Using("c"))),
			want:    []string{"Binding: its pod is not bound before driver gpu.example.com sets condition Attached of device gpu.example.com/node-1/gpu-0"},
		},
		"binding": {
			objects: append(bindingGates,
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0", tc.AwaitingBinding("Attached", "AttachFailed")).ReservedFor("p", "uid-p").Reported("gpu-0", "", nil, "Attached=False", "AttachFailed=False"), tc.Pod("p", tc.Using("c"))),
			want: []string{"Binding: its pod is not bound before driver gpu.example.com sets condition Attached of device gpu.example.com/node-1/gpu-0; now it is Attached=False: Because: so it is"},
		},
		"binding failed": {
			objects: append(bindingGates,
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0", tc.AwaitingBinding("Attached", "AttachFailed")).ReservedFor("p", "uid-p").Reported("gpu-0", "", nil, "AttachFailed=True"), tc.Pod("p", tc.Using("c"))),
			want: []string{"BindingFailed: driver gpu.example.com cannot bind device gpu.example.com/node-1/gpu-0: AttachFailed=True: Because: so it is"},
		},
		"bound": {
			objects: append(bindingGates,
				tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0", tc.AwaitingBinding("Attached", "AttachFailed")).ReservedFor("p", "uid-p").Reported("gpu-0", "", nil, "Attached=True", "AttachFailed=False"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(slices.Clone(test.objects), tc.Gate("DRAConsumableCapacity", true),
				tc.Pool(tc.Node1, tc.Device("gpu-0"), tc.Device("gpu-1"), tc.Device("nic-0", "bandwidth:=100G").Shareable()))
			if diff := cmp.Diff(test.want, flagsOf(inventoryWith(t, objects...), "c")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClaimDevices(t *testing.T) {
	network := &resourceapi.NetworkDeviceData{InterfaceName: "net1", IPs: []string{"10.1.0.5/24"}, HardwareAddress: "0a:58:0a:01:00:05"}
	v := inventoryWith(t, tc.Gate("DRAConsumableCapacity", true),
		tc.Pool(tc.Node1, tc.Device("nic-0", "bandwidth:=100G").Shareable()),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s1", "bandwidth", "10G")).Holding("nic-0", tc.AsShare("s2", "bandwidth", "20G")).Reported("nic-0", "s2", network, "Ready=True"),
		tc.Pod("p", tc.Using("c")),
	)
	got := v.Claims()[0].Requests[0].Devices
	want := []api.ClaimDevice{
		{Request: "gpu", Driver: tc.Driver, Pool: tc.Node1, Device: "nic-0", ShareID: "s1", ConsumedCapacity: map[string]string{"bandwidth": "10G"}},
		{Request: "gpu", Driver: tc.Driver, Pool: tc.Node1, Device: "nic-0", ShareID: "s2", ConsumedCapacity: map[string]string{"bandwidth": "20G"}},
	}
	status := got[1].Status
	if got[0].Status != nil {
		t.Errorf("the status of one share is told of the other one: %+v", got[0].Status)
	}
	if status == nil || status.Interface != "net1" || !slices.Equal(status.IPs, network.IPs) || status.HardwareAddress != network.HardwareAddress || len(status.Odd) > 0 {
		t.Errorf("the status is %+v, want that of the network data", status)
	}
	got[1].Status = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
