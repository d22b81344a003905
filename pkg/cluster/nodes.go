// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Nodes knows the nodes of one snapshot: which exist, the use of their resources by pods,
// and whether a pod can use them.
type Nodes struct {
	snap   *snapshot.Snapshot
	gates  *Gates
	claims *Claims
	// made has the made-up nodes, see [Nodes.All].
	made  func() []*corev1.Node
	usage func() nodeUsages
	// avoiding has the pods with a node that others must keep away from.
	avoiding func() []avoidingPod
	// neighbors has the results so far, by pod.
	neighbors sync.Map
}

// newNodes returns the nodes of a snapshot. It is faster if it is known which pods changed
// since a sibling was made.
func newNodes(snap *snapshot.Snapshot, gates *Gates, claims *Claims, sibling *Nodes, changed *difference[*corev1.Pod]) *Nodes {
	n := &Nodes{snap: snap, gates: gates, claims: claims}
	// Deferred work keeps no more of the snapshot than it needs.
	published, all := snap.Slices, &difference[*corev1.Pod]{Added: snap.Pods}
	n.made = sync.OnceValue(func() []*corev1.Node { return makeUpNodes(published) })
	switch {
	case changed == nil:
		n.usage = sync.OnceValue(func() nodeUsages { return gates.sumUsage(nodeUsages{}, all) })
		n.avoiding = sync.OnceValue(func() []avoidingPod { return avoidingPods(nil, all) })
	case changed.None():
		n.usage, n.avoiding = sibling.usage, sibling.avoiding
	default:
		// Unused parts cost nothing. Used parts forget the sibling.
		usage, avoiding := sibling.usage, sibling.avoiding
		n.usage = sync.OnceValue(func() nodeUsages { return gates.sumUsage(usage(), changed) })
		n.avoiding = sync.OnceValue(func() []avoidingPod { return avoidingPods(avoiding(), changed) })
	}
	return n
}

// All returns the snapshot's nodes and true. If the snapshot has none, it makes up the
// nodes that slices, or devices in them, name, and returns false: only their names are
// known then.
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

// resourceSum is a resource list in the scheduler's units.
type resourceSum struct {
	pods, milliCPU, memory, storage int64
	scalar                          map[corev1.ResourceName]int64
}

func sumOf(list corev1.ResourceList) resourceSum {
	var sum resourceSum
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
				addTo(&s.scalar, name, quantity.Value())
			}
		}
	}
}

func (s *resourceSum) subtract(list corev1.ResourceList) {
	less := sumOf(list)
	s.pods -= less.pods
	s.milliCPU -= less.milliCPU
	s.memory -= less.memory
	s.storage -= less.storage
	for name, quantity := range less.scalar {
		addTo(&s.scalar, name, -quantity)
	}
}

// addTo adds quantity to sums[name]; it allocates sums if nil.
func addTo(sums *map[corev1.ResourceName]int64, name corev1.ResourceName, quantity int64) {
	if *sums == nil {
		*sums = map[corev1.ResourceName]int64{}
	}
	(*sums)[name] += quantity
}

// nodeUsage is the resource use of the pods on a node. Its pods field counts them.
type nodeUsage struct {
	resourceSum
	ports []hostPort
	// ofDRA is the part of the extended resources that devices of claims serve.
	ofDRA map[corev1.ResourceName]int64
}

// nodeUsages has the usages by the name of the node. Nodes without pods have none.
type nodeUsages = layers[string, *nodeUsage]

// sumUsage adds up the pods of each node, starting from an earlier sum and the changes
// since.
func (g *Gates) sumUsage(before nodeUsages, changed *difference[*corev1.Pod]) nodeUsages {
	usage := map[string]*nodeUsage{}
	of := func(name string) *nodeUsage {
		if usage[name] == nil {
			node := &nodeUsage{}
			if known, found := before.Get(name); found {
				*node = *known
				node.scalar, node.ofDRA, node.ports = maps.Clone(node.scalar), maps.Clone(node.ofDRA), slices.Clone(node.ports)
			}
			usage[name] = node
		}
		return usage[name]
	}
	for _, pod := range changed.Removed {
		if !takesNode(pod) {
			continue
		}
		pod = defaultedPod(pod)
		node := of(pod.Spec.NodeName)
		node.pods--
		requests := g.podRequests(pod, true)
		node.subtract(requests)
		for _, name := range extendedFromDRA(pod) {
			quantity := requests[name]
			addTo(&node.ofDRA, name, -quantity.Value())
		}
		node.ports = slices.DeleteFunc(node.ports, func(p hostPort) bool { return p.pod == pod.Namespace+"/"+pod.Name })
	}
	for _, pod := range changed.Added {
		if !takesNode(pod) {
			continue
		}
		pod = defaultedPod(pod)
		node := of(pod.Spec.NodeName)
		node.pods++
		requests := g.podRequests(pod, true)
		node.add(requests)
		for _, name := range extendedFromDRA(pod) {
			quantity := requests[name]
			addTo(&node.ofDRA, name, quantity.Value())
		}
		node.ports = append(node.ports, hostPorts(pod)...)
	}
	return before.With(usage)
}

// usageOf returns the use of the node by its pods, except the given one.
func (n *Nodes) usageOf(pod *corev1.Pod, node *corev1.Node) *nodeUsage {
	all, found := n.usage().Get(node.Name)
	if !found {
		return &nodeUsage{}
	}
	running := n.snap.Pod(pod.Namespace, pod.Name)
	if running == nil || pod.UID == "" || running.UID != pod.UID || running.Spec.NodeName != node.Name || !takesNode(running) {
		return all
	}
	running = defaultedPod(running)
	others := &nodeUsage{resourceSum: all.resourceSum}
	others.pods--
	others.scalar = maps.Clone(all.scalar)
	others.subtract(n.gates.podRequests(running, true))
	name := running.Namespace + "/" + running.Name
	for _, port := range all.ports {
		if port.pod != name {
			others.ports = append(others.ports, port)
		}
	}
	return others
}

// podRequests returns the requests of a pod, including an ongoing resize if it is assigned
// to a node. In-place resizing and pod-level resources are on by default since Kubernetes
// 1.34, and so is DRA. The list must not be modified.
func (g *Gates) podRequests(pod *corev1.Pod, assigned bool) corev1.ResourceList {
	// With the status, the sum takes three times as long, and it is the same if nothing is
	// resized; most pods have nothing to add up.
	resized := assigned && isResized(pod)
	if !assigned || !resized && onlyContainer(pod) != nil {
		return specRequests(pod)
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources:                       resized,
		UseDRANodeAllocatableResourceClaimStatus: g.Enabled(GateNodeAllocatable),
	})
}

// specRequests returns the requests of a pod's spec. The list must not be modified.
func specRequests(pod *corev1.Pod) corev1.ResourceList {
	if only := onlyContainer(pod); only != nil {
		return only.Resources.Requests
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

// onlyContainer returns the container of a pod that uses no other resources of its node,
// nil if the pod does.
func onlyContainer(pod *corev1.Pod) *corev1.Container {
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 || pod.Spec.Overhead != nil || pod.Spec.Resources != nil ||
		len(pod.Status.NodeAllocatableResourceClaimStatuses) > 0 {
		return nil
	}
	return &pod.Spec.Containers[0]
}

// isResized reports whether the status has other resources of containers than the spec.
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

// hostPort is a port that a pod uses on the node.
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

// RequestOf returns how much of a resource an assigned pod uses on its node.
func (n *Nodes) RequestOf(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	return n.gates.podRequests(defaultedPod(pod), true)[name]
}

// ExtendedResourcesOf lists the extended resources that a node's device plugins offer or
// have offered, and that pods on it request, sorted.
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
	if usage, found := n.usage().Get(node.Name); found {
		for name, quantity := range usage.scalar {
			if quantity > 0 {
				add(name)
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// RequestedOn returns how much of an extended resource the pods on a node request, as the
// scheduler adds it up, whoever serves them. The second number is the part from DRA,
// according to their status.
func (n *Nodes) RequestedOn(node string, name corev1.ResourceName) (requested, ofDRA int64) {
	usage, found := n.usage().Get(node)
	if !found {
		return 0, 0
	}
	return usage.scalar[name], usage.ofDRA[name]
}

// podsIn returns the pods of some namespaces, in the order of the snapshot.
func (n *Nodes) podsIn(namespaces ...string) []*corev1.Pod {
	slices.Sort(namespaces)
	var pods []*corev1.Pod
	for _, namespace := range slices.Compact(namespaces) {
		compare := func(pod *corev1.Pod, name string) int { return strings.Compare(pod.Namespace, name) }
		from, _ := slices.BinarySearchFunc(n.snap.Pods, namespace, compare)
		to, _ := slices.BinarySearchFunc(n.snap.Pods[from:], namespace+"\x00", compare)
		pods = append(pods, n.snap.Pods[from:from+to]...)
	}
	return pods
}

// placedOn returns the node of a pod that counts for affinity and spreading, nil if it does
// not: the scheduler forgets finished pods, and pods on unknown nodes.
func (n *Nodes) placedOn(pod *corev1.Pod) *corev1.Node {
	if !takesNode(pod) {
		return nil
	}
	return n.snap.Node(pod.Spec.NodeName)
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

// extendedFromDRA lists the extended resources that the scheduler has given a pod from
// devices. If it does so for one container, it does so for all.
func extendedFromDRA(pod *corev1.Pod) []corev1.ResourceName {
	if pod.Status.ExtendedResourceClaimStatus == nil {
		return nil
	}
	var names []corev1.ResourceName
	for _, mapping := range pod.Status.ExtendedResourceClaimStatus.RequestMappings {
		if name := corev1.ResourceName(mapping.ResourceName); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isDRAExtendedResource reports whether the name of a resource can stand for a
// DeviceClass: an extended resource, or the implicit name of a class.
func isDRAExtendedResource(name corev1.ResourceName) bool {
	return IsExtendedResource(name) || strings.HasPrefix(string(name), resourceapi.ResourceDeviceClassPrefix)
}

// IsExtendedResource reports whether a name is an extended resource, as
// IsExtendedResourceName of pkg/apis/core/v1/helper of Kubernetes does.
func IsExtendedResource(name corev1.ResourceName) bool {
	text := string(name)
	if !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}

// isScalarResource reports whether the scheduler counts a resource as a whole
// number besides cpu, memory and ephemeral storage.
func isScalarResource(name corev1.ResourceName) bool {
	text := string(name)
	return IsExtendedResource(name) ||
		strings.HasPrefix(text, corev1.ResourceHugePagesPrefix) ||
		strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.ResourceAttachableVolumesPrefix)
}
