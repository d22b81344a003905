// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// drawn writes a tree with a line for each branch, indented by its depth.
func drawn(b *api.Branch) string {
	var out strings.Builder
	var draw func(b *api.Branch, depth int)
	draw = func(b *api.Branch, depth int) {
		out.WriteString(strings.Repeat("  ", depth) + b.Of + " " + b.Name)
		if len(b.Notes) > 0 {
			out.WriteString(" (" + strings.Join(b.Notes, "; ") + ")")
		}
		out.WriteString("\n")
		for i := range b.Branches {
			draw(&b.Branches[i], depth+1)
		}
	}
	draw(b, 0)
	return out.String()
}

func expectTree(t *testing.T, got api.Branch, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(drawn(&got))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTrees(t *testing.T) {
	network := &resourceapi.NetworkDeviceData{InterfaceName: "net1", IPs: []string{"10.1.0.5/24"}, HardwareAddress: "0a:58:0a:01:00:05"}
	v := inventoryWith(t, tc.Gate(extendedGate, true), gpus("gpus"), tc.NodeOffering(tc.Node1, fpgaResource+"=1"),
		tc.Pool(tc.Node1, tc.NamedDevices("gpu-0", "gpu-1")...),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p").Reported("gpu-0", "", network, "Ready=False", "Configured=True"),
		tc.Claim("gone", tc.GPUs("gpu", 1)).Holding("gpu-9").ReservedFor("p", "uid-p"),
		tc.Pod("p", tc.Using("c", "gone"), tc.RunningOn(tc.Node1), tc.ReportedHealth("c", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "it fell off the bus")),
	)
	t.Run("pod", func(t *testing.T) {
		expectTree(t, v.Trees().Pod(v.cluster.Snapshot.Pod(tc.Namespace, "p")), `
Pod p (Running; on node-1)
  ResourceClaim c (Reserved)
    Request gpu (1 of class gpu)
      Device gpu.example.com/node-1/gpu-0 (Allocated; Unhealthy: it fell off the bus; interface net1 10.1.0.5/24; 0a:58:0a:01:00:05; Ready=False: Because: so it is; Configured=True)
        ResourceSlice node-1-00
          Node node-1
  ResourceClaim gone (Reserved; device gpu.example.com/node-1/gpu-9 is no longer in any ResourceSlice)
    Request gpu (1 of class gpu)
      Device gpu.example.com/node-1/gpu-9 (no ResourceSlice has it any more)
`)
	})
	t.Run("node", func(t *testing.T) {
		tree, err := v.Trees().Node(t.Context(), tc.Node1)
		if err != nil {
			t.Fatal(err)
		}
		expectTree(t, tree, `
Node node-1
  ExtendedResource example.com/fpga (device plugin has 1, pods request 0; no DeviceClass serves it)
  ExtendedResource example.com/gpu (DeviceClass gpus has 2, 1 free)
  Pool gpu.example.com/node-1
    Device gpu-0 (Allocated; Unhealthy: it fell off the bus)
      ResourceClaim c (Reserved; interface net1 10.1.0.5/24; 0a:58:0a:01:00:05; Ready=False: Because: so it is; Configured=True)
        Pod p (Running; on node-1)
    Device gpu-1 (Free)
`)
	})
	t.Run("class", func(t *testing.T) {
		tree, err := v.Trees().Class(t.Context(), v.cluster.Snapshot.Class("gpus"))
		if err != nil {
			t.Fatal(err)
		}
		expectTree(t, tree, `
DeviceClass gpus
  ExtendedResource example.com/gpu
    Node node-1 (DeviceClass gpus has 2, 1 free)
`)
	})
	t.Run("device", func(t *testing.T) {
		expectTree(t, v.Trees().Device(v.cluster.Pools.Device(deviceID(&v.cluster.Snapshot.Claim(tc.Namespace, "c").Status.Allocation.Devices.Results[0]))), `
Device gpu.example.com/node-1/gpu-0 (Allocated; Unhealthy: it fell off the bus)
  ResourceSlice node-1-00
    Node node-1
  ResourceClaim c (Reserved; interface net1 10.1.0.5/24; 0a:58:0a:01:00:05; Ready=False: Because: so it is; Configured=True)
    Pod p (Running; on node-1)
`)
	})
}

func TestNodeTreeMarksWhatIsServedTwice(t *testing.T) {
	v := inventoryWith(t, tc.Gate(extendedGate, true), gpus("gpus"), tc.NodeOffering(tc.Node1, gpuResource+"=2"), tc.Pool(tc.Node1, tc.NamedDevices("gpu-0", "gpu-1")...),
		tc.Pod("p", tc.RunningOn(tc.Node1), tc.Requesting(gpuResource+"=2")))
	tree, err := v.Trees().Node(t.Context(), tc.Node1)
	if err != nil {
		t.Fatal(err)
	}
	expectTree(t, api.Branch{Of: "Node", Name: tc.Node1, Branches: tree.Branches[:1]}, `
Node node-1
  ExtendedResource example.com/gpu (device plugin has 2, pods request 2; DeviceClass gpus has 2, 2 free; both: the scheduler takes it from the device plugin alone here, and devices of the class are for claims)
`)
}
