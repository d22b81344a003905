// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	gpuResource  = "example.com/gpu"
	fpgaResource = "example.com/fpga"
	extendedGate = "DRAExtendedResource"
)

// gpus returns a class for the driver's devices with the name of an extended resource.
func gpus(name string) *resourceapi.DeviceClass {
	c := tc.ClassWhere(name, "device.driver == '"+tc.Driver+"'")
	c.Spec.ExtendedResourceName = ptr.To(gpuResource)
	return c
}

func extendedOf(t *testing.T, v *Inventory, className string) []api.ExtendedResource {
	t.Helper()
	classes, err := v.Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(classes, func(c api.Class) bool { return c.Name == className })
	if at < 0 {
		t.Fatalf("there is no class %s", className)
	}
	return classes[at].ExtendedResources
}

func TestExtendedResourcesOfClasses(t *testing.T) {
	gone := tc.NodeOffering("left", gpuResource+"=2")
	gone.Status.Allocatable[gpuResource] = resource.MustParse("0")
	fromDRA := tc.Pod("from-dra", tc.RunningOn(tc.Node1), tc.Requesting(gpuResource+"=1"), func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: "c",
			RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: gpuResource, RequestName: "gpu"}},
		}
	})
	v := inventoryWith(t, tc.Gate(extendedGate, true), gpus("gpus"),
		tc.NodeOffering(tc.Node1, gpuResource+"=4"), tc.Node("dra"), gone, tc.Node("none"),
		tc.Pool(tc.Node1, tc.NamedDevices("gpu-0", "gpu-1")...), tc.Pool("dra", tc.NamedDevices("gpu-0", "gpu-1")...), tc.Pool("left", tc.NamedDevices("gpu-0")...),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-1"), fromDRA,
		tc.Pod("from-plugin", tc.RunningOn(tc.Node1), tc.Requesting(gpuResource+"=2")),
		tc.Pod("finished", tc.RunningOn(tc.Node1), tc.Requesting(gpuResource+"=1"), tc.InPhase(corev1.PodFailed)),
	)
	want := []api.ExtendedResource{{Name: gpuResource, Class: "gpus", Nodes: []api.ResourceOnNode{
		{Node: "dra", ServedBy: api.ServedByDRA, Requested: ptr.To[int64](0), Devices: 2, Free: 2},
		{Node: "left", ServedBy: api.ServedByDRA, PluginCapacity: 2, Requested: ptr.To[int64](0), Devices: 1, Free: 1},
		{Node: tc.Node1, ServedBy: api.ServedByPlugin, PluginCapacity: 4, PluginAllocatable: 4, Requested: ptr.To[int64](3), RequestedOfDRA: 1, Devices: 2, Free: 1},
	}}}
	if diff := cmp.Diff(want, extendedOf(t, v, "gpus")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExtendedResourcesImplicitName(t *testing.T) {
	implicit := resourceapi.ResourceDeviceClassPrefix + tc.ClassGPU
	v := inventoryWith(t, tc.Gate(extendedGate, true), tc.Node(tc.Node1), tc.Node("node-2"), tc.Pool(tc.Node1, tc.NamedDevices("gpu-0")...),
		tc.Pod("p", tc.RunningOn(tc.Node1), tc.Requesting(implicit+"=1")))
	want := []api.ExtendedResource{{Name: implicit, Class: tc.ClassGPU, Nodes: []api.ResourceOnNode{
		{Node: tc.Node1, ServedBy: api.ServedByDRA, Requested: ptr.To[int64](1), Devices: 1, Free: 1},
	}}}
	if diff := cmp.Diff(want, extendedOf(t, v, tc.ClassGPU)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExtendedResourcesOfTwoClasses(t *testing.T) {
	v := inventoryWith(t, tc.Gate(extendedGate, true), gpus("a-first"), gpus("b-second"), tc.Node(tc.Node1), tc.Pool(tc.Node1, tc.NamedDevices("gpu-0")...))
	if got := extendedOf(t, v, "a-first"); got[0].Problem != "" || len(got[0].Nodes) != 1 {
		t.Errorf("the class that the scheduler takes: %+v", got)
	}
	got := extendedOf(t, v, "b-second")
	if want := "DeviceClass a-first names it, too; the scheduler takes the newest class, of two as old the first by name"; got[0].Problem != want || len(got[0].Nodes) > 0 {
		t.Errorf("the other one: %+v, want the problem %q and no nodes", got, want)
	}
}

func TestExtendedResourcesWhileTheFeatureIsOff(t *testing.T) {
	v := inventoryWith(t, tc.Gate(extendedGate, false), gpus("gpus"), tc.NodeOffering(tc.Node1, gpuResource+"=4"), tc.Pool(tc.Node1, tc.NamedDevices("gpu-0")...))
	got := extendedOf(t, v, "gpus")
	want := []api.ExtendedResource{{
		Name: gpuResource, Class: "gpus", Problem: "the feature gate DRAExtendedResource is off, so that only device plugins serve it",
		Nodes: []api.ResourceOnNode{{Node: tc.Node1, ServedBy: api.ServedByPlugin, PluginCapacity: 4, PluginAllocatable: 4, Requested: ptr.To[int64](0)}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPluginResources(t *testing.T) {
	v := inventoryWith(t, tc.Gate(extendedGate, true), gpus("gpus"),
		tc.NodeOffering(tc.Node1, gpuResource+"=4", fpgaResource+"=1", "cpu=8", "hugepages-2Mi=4Mi", "kubernetes.io/native=1"),
		tc.NodeOffering("node-2", fpgaResource+"=2"),
		tc.Pod("p", tc.RunningOn("node-2"), tc.Requesting(fpgaResource+"=2")),
	)
	got, err := v.PluginResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []api.ExtendedResource{{Name: fpgaResource, Nodes: []api.ResourceOnNode{
		{Node: tc.Node1, ServedBy: api.ServedByPlugin, PluginCapacity: 1, PluginAllocatable: 1, Requested: ptr.To[int64](0)},
		{Node: "node-2", ServedBy: api.ServedByPlugin, PluginCapacity: 2, PluginAllocatable: 2, Requested: ptr.To[int64](2)},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRequestedIsUnknownWithoutPods(t *testing.T) {
	v := inventoryWith(t, tc.Gate(extendedGate, true), tc.NodeOffering(tc.Node1, fpgaResource+"=1"), snapshot.Gap{Resource: snapshot.ResourcePods, Reason: "forbidden"})
	got, err := v.PluginResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Nodes[0].Requested != nil {
		t.Errorf("%+v, want one resource of which nobody knows how much is requested", got)
	}
}
