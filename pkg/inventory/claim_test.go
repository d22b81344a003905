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
	v := inventoryWith(t, slice(node1, devices("gpu-0", "gpu-1", "gpu-2")...),
		claim("a-pending"),
		claim("b-allocated").has("gpu-0"),
		claim("c-reserved").has("gpu-1").reservedFor("train", "uid-train"), pod("train", "c-reserved"),
		claim("d-deleting").has("gpu-2").reservedFor("eval", "uid-eval").deleting(), pod("eval", "d-deleting"),
	)
	var got []string
	for _, c := range v.Claims() {
		got = append(got, fmt.Sprintf("%s %s on %q for %v", c.Name, c.State, c.Node, c.ReservedFor))
	}
	want := []string{
		`a-pending Pending on "" for []`,
		`b-allocated Allocated on "node-1" for []`,
		`c-reserved Reserved on "node-1" for [pod/train]`,
		`d-deleting Deleting on "node-1" for [pod/eval]`,
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
	bindingGates := []any{gate("DRADeviceBindingConditions"), gate("DRAResourceClaimDeviceStatus")}
	for name, test := range map[string]struct {
		objects []any
		want    []string
	}{
		"nothing odd": {
			objects: []any{claim("c").has("gpu-0").reservedFor("p", "uid-p"), pod("p", "c")},
		},
		"unreserved": {
			objects: []any{claim("c").has("gpu-0")},
			want:    []string{"Unreserved: it has devices, but is reserved for nobody"},
		},
		"waiting for a pod": {
			objects: []any{claim("c")},
			want:    []string{"WaitingForPod: no pod uses it; it gets its devices when one does"},
		},
		"waiting for a pod that may be hidden": {
			objects: []any{claim("c"), snapshot.Gap{Resource: snapshot.ResourcePods, Reason: "forbidden"}},
		},
		"orphaned": {
			objects: []any{claim("c").ownedBy("p", "uid-p")},
			want:    []string{"Orphaned: it was made for pod p, which does not exist any more"},
		},
		"orphaned by a pod of the same name": {
			objects: []any{claim("c").ownedBy("p", "uid-earlier"), pod("p").waiting()},
			want:    []string{"Orphaned: it was made for pod p, which does not exist any more"},
		},
		"owned by a hidden pod": {
			objects: []any{claim("c").ownedBy("p", "uid-p"), snapshot.Gap{Resource: snapshot.ResourcePods, Reason: "forbidden"}},
		},
		"deleting, held by a pod": {
			objects: []any{claim("c").has("gpu-0").reservedFor("p", "uid-p").deleting("resource.kubernetes.io/delete-protection"), pod("p", "c")},
			want:    []string{"Held: its deletion waits for pod/p"},
		},
		"deleting, held by a finalizer": {
			objects: []any{claim("c").deleting("example.com/audit")},
			want:    []string{"Held: its deletion waits for finalizer example.com/audit"},
		},
		"reserved for a finished pod": {
			objects: []any{claim("c").has("gpu-0").reservedFor("p", "uid-p"), pod("p", "c").in(corev1.PodSucceeded)},
			want:    []string{"StaleReservation: it is reserved for pod p, which is finished"},
		},
		"reserved for a pod that is gone": {
			objects: []any{claim("c").has("gpu-0").reservedFor("p", "uid-p")},
			want:    []string{"StaleReservation: it is reserved for pod p, which does not exist any more"},
		},
		"reserved for another pod of the same name": {
			objects: []any{claim("c").has("gpu-0").reservedFor("p", "uid-earlier"), pod("p", "c").waiting()},
			want:    []string{"StaleReservation: it is reserved for pod p, which was replaced by another one of the same name"},
		},
		"reserved for something else": {
			objects: []any{claim("c").has("gpu-0").change(func(c *resourceapi.ResourceClaim) {
				c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{APIGroup: "example.com", Resource: "jobs", Name: "j", UID: "uid-j"}}
			})},
		},
		"device gone": {
			objects: []any{claim("c").has("gpu-9").reservedFor("p", "uid-p"), pod("p", "c")},
			want:    []string{"DeviceGone: no ResourceSlice has device gpu.example.com/node-1/gpu-9 any more"},
		},
		"device of an earlier generation while the driver replaces its slices": {
			objects: []any{
				claim("c").has("gpu-9").reservedFor("p", "uid-p"), pod("p", "c"),
				renamed("earlier", slice(node1, devices("gpu-9")...)), newer(node1+"-new", 2, slice(node1, devices("gpu-8")...)),
			},
		},
		"device of an earlier generation": {
			objects: []any{
				claim("c").has("gpu-9").reservedFor("p", "uid-p"), pod("p", "c"),
				renamed("earlier", slice(node1, devices("gpu-9")...)), newer(node1+"-new", 1, slice(node1, devices("gpu-8")...)),
			},
			want: []string{"DeviceGone: the newest generation of its pool does not have device gpu.example.com/node-1/gpu-9 any more"},
		},
		"device of a hidden slice": {
			objects: []any{claim("c").has("gpu-9").reservedFor("p", "uid-p"), pod("p", "c"), snapshot.Gap{Resource: snapshot.ResourceSlices, Reason: "forbidden"}},
		},
		"device twice": {
			objects: []any{
				claim("c").has("gpu-0").reservedFor("p", "uid-p"), pod("p", "c"),
				claim("d").has("gpu-0").reservedFor("q", "uid-q"), pod("q", "d"),
			},
			want: []string{"DeviceTwice: device gpu.example.com/node-1/gpu-0 is allocated to claim ml/d, too"},
		},
		"device twice in one claim": {
			objects: []any{claim("c").has("gpu-0").has("gpu-0").reservedFor("p", "uid-p"), pod("p", "c")},
			want:    []string{"DeviceTwice: device gpu.example.com/node-1/gpu-0 is allocated to this claim more than once"},
		},
		"device shared by another": {
			objects: []any{
				claim("c").has("nic-0").reservedFor("p", "uid-p"), pod("p", "c"),
				claim("d").has("nic-0", share("s2", "bandwidth", "10G")).reservedFor("q", "uid-q"), pod("q", "d"),
			},
			want: []string{"DeviceTwice: device gpu.example.com/node-1/nic-0 is allocated to claim ml/d, too"},
		},
		"device shared, and another has all of it": {
			objects: []any{
				claim("c").has("nic-0", share("s2", "bandwidth", "10G")).reservedFor("p", "uid-p"), pod("p", "c"),
				claim("d").has("nic-0").reservedFor("q", "uid-q"), pod("q", "d"),
			},
			want: []string{"DeviceTwice: device gpu.example.com/node-1/nic-0 is allocated to claim ml/d, too"},
		},
		"device shared beyond its capacity": {
			objects: []any{
				gate("DRAConsumableCapacity"),
				claim("c").has("nic-0", share("s1", "bandwidth", "60G")).has("nic-0", share("s3", "bandwidth", "50G")).reservedFor("p", "uid-p"), pod("p", "c"),
				claim("d").has("nic-0", share("s2", "bandwidth", "10G")).reservedFor("q", "uid-q"), pod("q", "d"),
			},
			want: []string{"DeviceTwice: shares of device gpu.example.com/node-1/nic-0 take 120G of capacity gpu.example.com/bandwidth, which is 100G"},
		},
		"device shared": {
			objects: []any{
				claim("c").has("nic-0", share("s1", "bandwidth", "10G")).reservedFor("p", "uid-p"), pod("p", "c"),
				claim("d").has("nic-0", share("s2", "bandwidth", "10G")).reservedFor("q", "uid-q"), pod("q", "d"),
			},
		},
		"device watched by an admin": {
			objects: []any{
				claim("c").has("gpu-0").reservedFor("p", "uid-p"), pod("p", "c"),
				claim("d").has("gpu-0", func(r *resourceapi.DeviceRequestAllocationResult) { r.AdminAccess = ptr.To(true) }).reservedFor("q", "uid-q"), pod("q", "d"),
			},
		},
		"device not ready": {
			objects: []any{claim("c").has("gpu-0").reservedFor("p", "uid-p").says("gpu-0", "", nil, "Ready=False", "Configured=True", "Degraded=False"), pod("p", "c")},
			want:    []string{"DeviceCondition: driver gpu.example.com says of device gpu.example.com/node-1/gpu-0: Ready=False: Because: so it is"},
		},
		"device unhealthy": {
			objects: []any{
				claim("c").has("gpu-0").reservedFor("p", "uid-p"),
				pod("p", "c").reports("c", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "it fell off the bus"),
			},
			want: []string{"DeviceUnhealthy: device gpu.example.com/node-1/gpu-0 is unhealthy: it fell off the bus"},
		},
		"binding, nothing said": {
			objects: append(bindingGates, claim("c").has("gpu-0", binding("Attached", "AttachFailed")), pod("p", "c").waiting()),
			want:    []string{"Binding: its pod is not bound before driver gpu.example.com sets condition Attached of device gpu.example.com/node-1/gpu-0"},
		},
		"binding": {
			objects: append(bindingGates,
				claim("c").has("gpu-0", binding("Attached", "AttachFailed")).reservedFor("p", "uid-p").says("gpu-0", "", nil, "Attached=False", "AttachFailed=False"), pod("p", "c").waiting()),
			want: []string{"Binding: its pod is not bound before driver gpu.example.com sets condition Attached of device gpu.example.com/node-1/gpu-0; now it is Attached=False: Because: so it is"},
		},
		"binding failed": {
			objects: append(bindingGates,
				claim("c").has("gpu-0", binding("Attached", "AttachFailed")).reservedFor("p", "uid-p").says("gpu-0", "", nil, "AttachFailed=True"), pod("p", "c").waiting()),
			want: []string{"BindingFailed: driver gpu.example.com cannot bind device gpu.example.com/node-1/gpu-0: AttachFailed=True: Because: so it is"},
		},
		"bound": {
			objects: append(bindingGates,
				claim("c").has("gpu-0", binding("Attached", "AttachFailed")).reservedFor("p", "uid-p").says("gpu-0", "", nil, "Attached=True", "AttachFailed=False"), pod("p", "c")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(slices.Clone(test.objects), gate("DRAConsumableCapacity"),
				slice(node1, device("gpu-0"), device("gpu-1"), device("nic-0", tc.Shareable, tc.WithCapacity("bandwidth", "100G"))))
			if diff := cmp.Diff(test.want, flagsOf(inventoryWith(t, objects...), "c")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClaimDevices(t *testing.T) {
	network := &resourceapi.NetworkDeviceData{InterfaceName: "net1", IPs: []string{"10.1.0.5/24"}, HardwareAddress: "0a:58:0a:01:00:05"}
	v := inventoryWith(t, gate("DRAConsumableCapacity"),
		slice(node1, device("nic-0", tc.Shareable, tc.WithCapacity("bandwidth", "100G"))),
		claim("c").has("nic-0", share("s1", "bandwidth", "10G")).has("nic-0", share("s2", "bandwidth", "20G")).
			says("nic-0", "s2", network, "Ready=True"),
		pod("p", "c").waiting(),
	)
	got := v.Claims()[0].Requests[0].Devices
	want := []api.ClaimDevice{
		{Request: "gpu", Driver: driver, Pool: node1, Device: "nic-0", ShareID: "s1", ConsumedCapacity: map[string]string{"bandwidth": "10G"}},
		{Request: "gpu", Driver: driver, Pool: node1, Device: "nic-0", ShareID: "s2", ConsumedCapacity: map[string]string{"bandwidth": "20G"}},
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

func renamed(name string, s *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
	s.Name = name
	return s
}

// newer is of generation 2, with so many slices declared.
func newer(name string, declared int64, s *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
	s.Name, s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = name, 2, declared
	return s
}
