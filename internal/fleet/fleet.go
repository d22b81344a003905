// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet makes up clusters of any size for benchmarks and tests. The
// same numbers always give the same cluster. It is imported by tests only.
package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// Driver is the name of the only driver.
	Driver = "gpu.example.com"
	// Class is the name of the only device class; it has all devices of Driver.
	Class = "gpu.example.com"
	// Namespaces is how many namespaces the claims and pods are spread over.
	Namespaces = 20
)

// Fleet makes a cluster with one slice of devices for each node, and claims
// that each hold one device and are reserved for a running pod. Claims beyond
// the number of devices are pending, and so are their pods. Node i is node-i
// with five digits, its pool has the same name, its devices are gpu-0 and so
// on; claim i is claim-i, its pod pod-i.
func Fleet(nodes, devicesPerNode, claims int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Source: "fleet",
		Clock:  snapshot.Clock{TakenAt: moment(0)},
		Release: snapshot.Release{ServerVersion: "v1.37.1", Gates: map[string]snapshot.Gate{
			"DynamicResourceAllocation": {Enabled: true, Source: snapshot.GateFromMetrics},
			"DRAPrioritizedList":        {Enabled: true, Source: snapshot.GateFromMetrics},
		}},
		Classes: []*resourceapi.DeviceClass{class()},
	}
	for i := range Namespaces {
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{
			ObjectMeta: meta("", fmt.Sprintf("team-%02d", i), 1, i),
			Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
		})
	}
	for i := range nodes {
		s.Nodes = append(s.Nodes, node(i))
		s.Slices = append(s.Slices, slice(i, devicesPerNode))
	}
	// Lists are sorted by namespace first.
	for team := range Namespaces {
		for i := team; i < claims; i += Namespaces {
			s.Claims = append(s.Claims, claim(i, nodes, devicesPerNode))
			s.Pods = append(s.Pods, pod(i, nodes, devicesPerNode))
		}
	}
	s.Templates = templates(s.Pods, s.Claims)
	return s
}

// templates returns the templates that the pods name, each with what the claim of a pod
// asks for. Pod i has claim i.
func templates(pods []*corev1.Pod, claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaimTemplate {
	var out []*resourceapi.ResourceClaimTemplate
	made := make(map[[2]string]bool)
	for i, p := range pods {
		name := *p.Spec.ResourceClaims[0].ResourceClaimTemplateName
		if key := [2]string{p.Namespace, name}; !made[key] {
			made[key] = true
			out = append(out, &resourceapi.ResourceClaimTemplate{
				ObjectMeta: meta(p.Namespace, name, 12, len(out)),
				Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: *claims[i].Spec.DeepCopy()},
			})
		}
	}
	sortByName(out)
	return out
}

func moment(secondsBefore int) time.Time {
	return time.Date(2026, time.September, 1, 12, 0, 0, 0, time.UTC).Add(-time.Duration(secondsBefore) * time.Second).Local()
}

// uid returns a UID that is unique for a kind of object and its number.
func uid(kind, i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-%04x-4000-8000-%012x", i*2654435761%(1<<32), kind, i))
}

func meta(namespace, name string, kind, i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         namespace,
		Name:              name,
		UID:               uid(kind, i),
		ResourceVersion:   fmt.Sprint(100000*kind + i),
		CreationTimestamp: metav1.Time{Time: moment(3600 + i)},
	}
}

func nodeName(i int) string  { return fmt.Sprintf("node-%05d", i) }
func claimName(i int) string { return fmt.Sprintf("claim-%06d", i) }
func podName(i int) string   { return fmt.Sprintf("pod-%06d", i) }
func team(i int) string      { return fmt.Sprintf("team-%02d", i%Namespaces) }

func class() *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: meta("", Class, 2, 0),
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
			{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "` + Driver + `"`}},
		}},
	}
}

func node(i int) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("128"),
		corev1.ResourceMemory:           resource.MustParse("1056763060Ki"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1843269236Ki"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	n := &corev1.Node{
		ObjectMeta: meta("", nodeName(i), 3, i),
		Spec:       corev1.NodeSpec{ProviderID: "example:///zone-" + fmt.Sprint(i%3) + "/" + nodeName(i)},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", 1+i>>16, i>>8&255, i&255)},
				{Type: corev1.NodeHostName, Address: nodeName(i)},
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: "v1.37.1", OperatingSystem: "linux", Architecture: "amd64",
				KernelVersion: "6.8.0-45-generic", OSImage: "Ubuntu 24.04 LTS", ContainerRuntimeVersion: "containerd://2.2.0",
			},
		},
	}
	n.Labels = map[string]string{
		corev1.LabelHostname:           nodeName(i),
		corev1.LabelArchStable:         "amd64",
		corev1.LabelOSStable:           "linux",
		corev1.LabelInstanceTypeStable: "gpu.8x",
		corev1.LabelTopologyZone:       fmt.Sprintf("zone-%d", i%3),
		corev1.LabelTopologyRegion:     "region-1",
		"example.com/rack":             fmt.Sprintf("rack-%03d", i/16),
	}
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady,
	} {
		condition := corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHas", Message: "kubelet says so",
			LastHeartbeatTime: metav1.Time{Time: moment(i % 60)}, LastTransitionTime: metav1.Time{Time: moment(7200)},
		}
		if kind == corev1.NodeReady {
			condition.Status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, condition)
	}
	return n
}

// product returns the model and memory of a node's devices: two nodes in three
// have the large one.
func product(node int) (model, architecture, memory string) {
	if node%3 == 0 {
		return "NVIDIA A100-SXM4-40GB", "Ampere", "40Gi"
	}
	return "NVIDIA H100 80GB HBM3", "Hopper", "80Gi"
}

func slice(i, devices int) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{
		ObjectMeta: meta("", nodeName(i)+"-"+Driver+"-x7k2p", 4, i),
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   Driver,
			Pool:     resourceapi.ResourcePool{Name: nodeName(i), Generation: 1, ResourceSliceCount: 1},
			NodeName: ptr.To(nodeName(i)),
		},
	}
	s.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: nodeName(i), UID: uid(3, i), Controller: ptr.To(true)},
	}
	for d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, device(i, d))
	}
	return s
}

func device(node, d int) resourceapi.Device {
	model, architecture, memory := product(node)
	text := func(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }
	version := func(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{VersionValue: &s} }
	return resourceapi.Device{
		Name: fmt.Sprintf("gpu-%d", d),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"type":                            text("gpu"),
			"productName":                     text(model),
			"brand":                           text("Nvidia"),
			"architecture":                    text(architecture),
			"uuid":                            text("GPU-" + string(uid(5, node*64+d))),
			"driverVersion":                   version("580.65.6"),
			"cudaComputeCapability":           version("9.0.0"),
			"numa":                            {IntValue: ptr.To(int64(d / 4))},
			"healthy":                         {BoolValue: ptr.To(true)},
			"resource.kubernetes.io/pcieRoot": text(fmt.Sprintf("pci0000:%02x", 0x17+0x10*(d/4))),
			"resource.kubernetes.io/pciBusID": text(fmt.Sprintf("0000:%02x:00.0", 0x18+d)),
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"memory": {Value: resource.MustParse(memory)},
		},
	}
}

// allocated reports whether claim i gets a device, and which.
func allocated(i, nodes, devices int) (node, device int, ok bool) {
	if i >= nodes*devices {
		return 0, 0, false
	}
	return i % nodes, i / nodes, true
}

func claim(i, nodes, devices int) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{
		ObjectMeta: meta(team(i), claimName(i), 6, i),
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "gpu",
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: Class,
				AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
				Count:           1,
			},
		}}}},
	}
	c.Annotations = map[string]string{"resource.kubernetes.io/pod-claim-name": "gpu"}
	c.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Pod", Name: podName(i), UID: uid(7, i), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)},
	}
	n, d, ok := allocated(i, nodes, devices)
	if !ok {
		return c
	}
	c.Finalizers = []string{resourceapi.Finalizer}
	c.Status = resourceapi.ResourceClaimStatus{
		Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{
				Request: "gpu", Driver: Driver, Pool: nodeName(n), Device: fmt.Sprintf("gpu-%d", d),
			}}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{nodeName(n)}},
				},
			}}},
			AllocationTimestamp: &metav1.Time{Time: moment(1800 + i)},
		},
		ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: podName(i), UID: uid(7, i)}},
	}
	return c
}

func pod(i, nodes, devices int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: meta(team(i), podName(i), 7, i),
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name:  "main",
				Image: "registry.example.com/train:1",
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")},
					Claims:   []corev1.ResourceClaim{{Name: "gpu"}},
				},
			}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpu")}},
			SchedulerName:  corev1.DefaultSchedulerName,
			RestartPolicy:  corev1.RestartPolicyAlways,
		},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodPending,
			ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To(claimName(i))}},
		},
	}
	p.Labels = map[string]string{"app": "train"}
	n, _, ok := allocated(i, nodes, devices)
	if !ok {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0 nodes are available: cannot allocate all claims.", LastTransitionTime: metav1.Time{Time: moment(600)},
		}}
		return p
	}
	p.Spec.NodeName = nodeName(n)
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: moment(1700)}},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: moment(1600)}},
	}
	return p
}
