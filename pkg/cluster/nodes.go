// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Nodes answers for the nodes of one snapshot: which there are, what pods take on
// them, and whether a pod can use them.
type Nodes struct {
	snap   *snapshot.Snapshot
	gates  *Gates
	claims *Claims
	// made has the nodes that are made up, see [Nodes.All].
	made   func() []*corev1.Node
	usage  func() map[string]*nodeUsage
	placed func() []placedPod
	// neighbors has what was asked for so far about pods, by pod.
	neighbors sync.Map
}

func newNodes(snap *snapshot.Snapshot, gates *Gates, claims *Claims) *Nodes {
	n := &Nodes{snap: snap, gates: gates, claims: claims}
	n.made = sync.OnceValue(func() []*corev1.Node { return makeUpNodes(snap.Slices) })
	n.usage = sync.OnceValue(n.sumUsage)
	n.placed = sync.OnceValue(func() []placedPod { return placedPods(snap) })
	return n
}

// All returns the snapshot's nodes and true. If the snapshot has none, it
// makes up those that slices, or devices in them, name, and returns false:
// nothing but their names is known then.
func (n *Nodes) All() (nodes []*corev1.Node, known bool) {
	if n.madeUp() {
		return n.made(), false
	}
	return n.snap.Nodes, true
}

func (n *Nodes) madeUp() bool {
	return len(n.snap.Nodes) == 0
}

func makeUpNodes(published []*resourceapi.ResourceSlice) []*corev1.Node {
	names := sets.New[string]()
	for _, slice := range published {
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
func (n *Nodes) sumUsage() map[string]*nodeUsage {
	usage := map[string]*nodeUsage{}
	requests := corev1.ResourceList{}
	for _, pod := range n.snap.Pods {
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
		requests = n.podRequestsInto(requests, pod, true)
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
func (n *Nodes) usageOf(pod *corev1.Pod, node *corev1.Node) *nodeUsage {
	all := n.usage()[node.Name]
	if all == nil {
		return &nodeUsage{}
	}
	running := n.snap.Pod(pod.Namespace, pod.Name)
	if running == nil || pod.UID == "" || running.UID != pod.UID || running.Spec.NodeName != node.Name ||
		running.Status.Phase == corev1.PodSucceeded || running.Status.Phase == corev1.PodFailed {
		return all
	}
	running = defaultedPod(running)
	others := &nodeUsage{resourceSum: all.resourceSum}
	others.pods--
	own := sumOf(n.podRequests(running, true))
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
func (n *Nodes) podRequests(pod *corev1.Pod, assigned bool) corev1.ResourceList {
	return n.podRequestsInto(nil, pod, assigned)
}

// podRequestsInto is podRequests with the memory of a list that is no longer needed.
func (n *Nodes) podRequestsInto(list corev1.ResourceList, pod *corev1.Pod, assigned bool) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		// It takes three times as long, for the same sum if nothing is resized.
		UseStatusResources:                       assigned && isResized(pod),
		UseDRANodeAllocatableResourceClaimStatus: assigned && n.gates.Enabled(GateNodeAllocatable),
		Reuse:                                    list,
	})
}

// isResized reports whether the status says something else about what containers
// take than the spec.
func isResized(pod *corev1.Pod) bool {
	if resourcehelper.IsPodResizeInfeasible(pod) {
		return true
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			wanted := containers[i].Resources.Requests
			for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
				for j := range statuses {
					status := &statuses[j]
					if status.Name != containers[i].Name {
						continue
					}
					if status.AllocatedResources != nil && !maps.EqualFunc(wanted, status.AllocatedResources, sameQuantity) ||
						status.Resources != nil && status.Resources.Requests != nil && !maps.EqualFunc(wanted, status.Resources.Requests, sameQuantity) {
						return true
					}
				}
			}
		}
	}
	return false
}

func sameQuantity(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

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
func (n *Nodes) RequestOf(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	return n.podRequests(defaultedPod(pod), true)[name]
}

// ExtendedResourcesOf lists the extended resources that a node's device plugins
// offer or have offered, and those that pods on it ask for, sorted.
func (n *Nodes) ExtendedResourcesOf(node *corev1.Node) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	add := func(name corev1.ResourceName) {
		if isDRAExtendedResource(name) {
			names[name] = true
		}
	}
	for name := range node.Status.Capacity {
		add(name)
	}
	for name := range node.Status.Allocatable {
		add(name)
	}
	if usage := n.usage()[node.Name]; usage != nil {
		for name, quantity := range usage.scalar {
			if quantity > 0 {
				add(name)
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// RequestedOn is how much of an extended resource the pods on a node ask for, as
// the scheduler adds it up: for it, it does not matter there who serves them.
// The second number is the part of it that they have from DRA, as their status
// says.
func (n *Nodes) RequestedOn(node string, name corev1.ResourceName) (requested, ofDRA int64) {
	usage := n.usage()[node]
	if usage == nil {
		return 0, 0
	}
	return usage.scalar[name], usage.ofDRA[name]
}

// placedPod is a pod that takes part in affinity, and its node.
type placedPod struct {
	pod  *corev1.Pod
	node *corev1.Node
}

// placedPods are those that a node of the snapshot has. The scheduler forgets
// finished pods.
func placedPods(snap *snapshot.Snapshot) []placedPod {
	var placed []placedPod
	for _, pod := range snap.Pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if node := snap.Node(pod.Spec.NodeName); node != nil {
			placed = append(placed, placedPod{pod, node})
		}
	}
	return placed
}

// seesPodsOf reports whether all pods that terms can match were read.
func (n *Nodes) seesPodsOf(terms []corev1.PodAffinityTerm, namespace string) bool {
	gap := n.snap.Gap(snapshot.ResourcePods)
	return gap == nil || gap.Namespace != "" && gap.Namespace == namespace && !slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
	})
}

// domain is a value of a node label that is a topology key.
type domain struct{ key, value string }

func domainOf(node *corev1.Node, key string) (domain, bool) {
	value, found := node.Labels[key]
	return domain{key, value}, found
}
