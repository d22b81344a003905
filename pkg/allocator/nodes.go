// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// Nodes returns the snapshot's nodes and true. If the snapshot has none, it
// makes up those that slices, or devices in them, name, and returns false:
// nothing but their names is known then.
func (a *Allocator) Nodes() (nodes []*corev1.Node, known bool) {
	if a.nodesMadeUp() {
		return a.nodes(), false
	}
	return a.snap.Nodes, true
}

func (a *Allocator) nodesMadeUp() bool {
	return len(a.snap.Nodes) == 0
}

func (a *Allocator) makeUpNodes() []*corev1.Node {
	names := sets.New[string]()
	for _, slice := range a.snap.Slices {
		names.Insert(ptr.Deref(slice.Spec.NodeName, ""))
		for i := range slice.Spec.Devices {
			names.Insert(ptr.Deref(slice.Spec.Devices[i].NodeName, ""))
		}
	}
	names.Delete("")
	nodes := make([]*corev1.Node, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{corev1.LabelHostname: name},
		}})
	}
	return nodes
}

// resourceSum is a resource list as the scheduler counts.
type resourceSum struct {
	pods, milliCPU, memory, storage int64
	scalar                          map[corev1.ResourceName]int64
}

func sumOf(list corev1.ResourceList) resourceSum {
	sum := resourceSum{scalar: map[corev1.ResourceName]int64{}}
	sum.add(list)
	return sum
}

func (s *resourceSum) add(list corev1.ResourceList) {
	for name, quantity := range list {
		switch name {
		case corev1.ResourcePods:
			s.pods += quantity.Value()
		case corev1.ResourceCPU:
			s.milliCPU += quantity.MilliValue()
		case corev1.ResourceMemory:
			s.memory += quantity.Value()
		case corev1.ResourceEphemeralStorage:
			s.storage += quantity.Value()
		default:
			if isScalarResource(name) {
				s.scalar[name] += quantity.Value()
			}
		}
	}
}

// nodeUsage is what the pods on a node take. Its pods field counts them.
type nodeUsage struct {
	resourceSum
	ports []hostPort
	// ofDRA is the part of the extended resources that devices of claims serve.
	ofDRA map[corev1.ResourceName]int64
}

// sumUsage adds up the pods of each node. Like for the scheduler, finished
// pods take nothing, and those being deleted do.
func (a *Allocator) sumUsage() map[string]*nodeUsage {
	usage := map[string]*nodeUsage{}
	for _, pod := range a.snap.Pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		pod = defaultedPod(pod)
		node := usage[pod.Spec.NodeName]
		if node == nil {
			node = &nodeUsage{resourceSum: sumOf(nil), ofDRA: map[corev1.ResourceName]int64{}}
			usage[pod.Spec.NodeName] = node
		}
		node.pods++
		requests := a.podRequests(pod, true)
		node.add(requests)
		for _, name := range extendedFromDRA(pod) {
			quantity := requests[name]
			node.ofDRA[name] += quantity.Value()
		}
		node.ports = append(node.ports, hostPorts(pod)...)
	}
	return usage
}

// usageOf returns what pods take on the node, the given one excepted.
func (a *Allocator) usageOf(pod *corev1.Pod, node *corev1.Node) *nodeUsage {
	all := a.usage()[node.Name]
	if all == nil {
		return &nodeUsage{}
	}
	running := a.snap.Pod(pod.Namespace, pod.Name)
	if running == nil || pod.UID == "" || running.UID != pod.UID || running.Spec.NodeName != node.Name ||
		running.Status.Phase == corev1.PodSucceeded || running.Status.Phase == corev1.PodFailed {
		return all
	}
	running = defaultedPod(running)
	others := &nodeUsage{resourceSum: all.resourceSum}
	others.pods--
	own := sumOf(a.podRequests(running, true))
	others.milliCPU -= own.milliCPU
	others.memory -= own.memory
	others.storage -= own.storage
	others.scalar = maps.Clone(all.scalar)
	for name, quantity := range own.scalar {
		others.scalar[name] -= quantity
	}
	name := running.Namespace + "/" + running.Name
	for _, port := range all.ports {
		if port.pod != name {
			others.ports = append(others.ports, port)
		}
	}
	return others
}

// podRequests returns what a pod takes. For one that is assigned to a node,
// that includes what an ongoing resize still takes. In-place resizing and
// pod-level resources are on by default since Kubernetes 1.34, and so is DRA.
func (a *Allocator) podRequests(pod *corev1.Pod, assigned bool) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources:                       assigned,
		UseDRANodeAllocatableResourceClaimStatus: assigned && a.FeatureEnabled(gateNodeAllocatable),
	})
}

// hostPort is a port that a pod takes on the node.
type hostPort struct {
	ip       string
	port     int32
	protocol corev1.Protocol
	// pod is its namespace and name.
	pod string
}

const anyIP = "0.0.0.0"

// String returns the port as in "0.0.0.0:80/TCP".
func (p hostPort) String() string {
	return fmt.Sprintf("%s:%d/%s", p.ip, p.port, p.protocol)
}

func (p hostPort) conflicts(other hostPort) bool {
	return p.port == other.port && p.protocol == other.protocol &&
		(p.ip == other.ip || p.ip == anyIP || other.ip == anyIP)
}

// hostPorts returns the host ports of the containers that run as long as the
// pod.
func hostPorts(pod *corev1.Pod) []hostPort {
	var ports []hostPort
	add := func(containers []corev1.Container, sidecarsOnly bool) {
		for i := range containers {
			policy := containers[i].RestartPolicy
			if sidecarsOnly && (policy == nil || *policy != corev1.ContainerRestartPolicyAlways) {
				continue
			}
			for _, p := range containers[i].Ports {
				if p.HostPort <= 0 {
					continue
				}
				port := hostPort{ip: p.HostIP, port: p.HostPort, protocol: p.Protocol, pod: pod.Namespace + "/" + pod.Name}
				if port.ip == "" {
					port.ip = anyIP
				}
				if port.protocol == "" {
					port.protocol = corev1.ProtocolTCP
				}
				ports = append(ports, port)
			}
		}
	}
	add(pod.Spec.InitContainers, true)
	add(pod.Spec.Containers, false)
	return ports
}

// RequestOf is what a pod that is assigned to a node takes of a resource there.
func (a *Allocator) RequestOf(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	return a.podRequests(defaultedPod(pod), true)[name]
}
