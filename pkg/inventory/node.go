// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Node is a node with its devices one by one.
type Node struct {
	api.Node
	// Groups are the devices by driver and by what they are close to.
	Groups []NodeGroup
}

// isDown reports whether a node is not ready, or gone.
func (n *Node) isDown() bool { return n.State == NodeNotReady || n.State == NodeGone }

// IsAway reports whether no pod can use a node: it is not ready or gone, or all of its
// devices are unusable.
func (n *Node) IsAway() bool {
	c := &n.Devices
	return n.isDown() || c.Unusable > 0 && c.Unusable == c.Total || c.Gone > 0 && c.Total == 0
}

// Used counts the devices that claims use, and those that they block, since they use partitions of
// the same hardware.
func (n *Node) Used() int { return n.Devices.Allocated + n.Devices.Shared + n.Devices.Blocked }

// NodeTrouble is a condition that keeps pods from devices of a node.
type NodeTrouble int

// The troubles, the worst last. A taint of a node is none by itself: it may keep the node for the
// pods that need devices.
const (
	NoTrouble NodeTrouble = iota
	TaintedNode
	// DevicesInTrouble are devices that are tainted, unhealthy or unusable.
	DevicesInTrouble
	CordonedNode
	AwayNode
)

// Trouble returns the worst trouble of a node.
func (n *Node) Trouble() NodeTrouble {
	c := &n.Devices
	switch {
	case n.IsAway():
		return AwayNode
	case n.Cordoned:
		return CordonedNode
	case c.Tainted > 0, c.TaintedInUse > 0, c.Unhealthy > 0, c.Unusable > 0:
		return DevicesInTrouble
	case len(n.Taints) > 0:
		return TaintedNode
	default:
		return NoTrouble
	}
}

// Any reports whether something is wrong with a node.
func (t NodeTrouble) Any() bool { return t > TaintedNode }

// NodeGroup are devices of one driver that are close to each other.
type NodeGroup struct {
	Driver string
	// Close is the PCIe root or, if none is published, the NUMA node that the
	// devices share; empty if neither is published.
	Close   string
	Devices []NodeDevice
}

// NodeDevice is a device in a [NodeGroup].
type NodeDevice struct {
	Name      string
	State     api.DeviceState
	Unhealthy bool
	// TaintedInUse is true if claims have it and it has a taint that keeps others
	// away.
	TaintedInUse bool
}

// Nodes lists the nodes with devices by name, and after them the devices for
// several nodes.
func (v *Inventory) Nodes() []Node {
	nodes, _ := describedIn(v.cluster).nodes.of(func() ([]Node, error) { return describeNodes(v.counter), nil })
	return nodes
}

func describeNodes(n *deviceCounter) []Node {
	byScope := map[string]*Node{}
	groups := map[string]map[groupKey]*NodeGroup{}
	at := func(name, scope string) *Node {
		if byScope[scope] == nil {
			node := &Node{Node: api.Node{Name: name, Scope: scope, State: nodeState(n.cluster, name)}}
			if object := n.cluster.Snapshot.Node(name); object != nil {
				node.Cordoned, node.Taints = object.Spec.Unschedulable, nodeTaints(object)
			}
			byScope[scope], groups[scope] = node, map[groupKey]*NodeGroup{}
		}
		return byScope[scope]
	}
	within := func(scope string, key groupKey) *NodeGroup {
		if groups[scope][key] == nil {
			groups[scope][key] = &NodeGroup{Driver: key.driver, Close: key.near}
		}
		return groups[scope][key]
	}
	all := n.cluster.Pools.Devices()
	for i := range all {
		d := &all[i]
		name, scope := deviceScope(d)
		node := at(name, scope)
		health, _ := healthOf(n.cluster, d)
		unhealthy := health == string(corev1.ResourceHealthStatusUnhealthy)
		state := n.countDevice(&node.Devices, d)
		node.Devices.FreeIsUpperBound = node.Devices.FreeIsUpperBound || state == api.DeviceStateFree && n.notRead.uncertain(state)
		if unhealthy {
			node.Devices.Unhealthy++
		}
		group := within(scope, groupKey{d.ID.Driver, closeTo(d)})
		group.Devices = append(group.Devices, NodeDevice{d.ID.Device, state, unhealthy, taintedInUse(n.cluster, d, state)})
	}
	for _, d := range n.unpublished() {
		if d.State != api.DeviceStateGone || d.Node == "" {
			continue
		}
		node := at(d.Node, d.Node)
		node.Devices.Gone++
		group := within(d.Node, groupKey{d.Driver, ""})
		group.Devices = append(group.Devices, NodeDevice{Name: d.Name, State: d.State})
	}
	nodes := make([]Node, 0, len(byScope))
	for scope, node := range byScope {
		for _, key := range slices.SortedFunc(maps.Keys(groups[scope]), func(a, b groupKey) int {
			return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.near, b.near))
		}) {
			node.Groups = append(node.Groups, *groups[scope][key])
		}
		nodes = append(nodes, *node)
	}
	slices.SortFunc(nodes, func(a, b Node) int {
		switch {
		case (a.Name == "") != (b.Name == ""):
			return cmp.Compare(b.Name, a.Name)
		default:
			return cmp.Compare(a.Scope, b.Scope)
		}
	})
	return nodes
}

// groupKey tells the groups of a node apart.
type groupKey struct{ driver, near string }

// States of nodes. A node is NodeGone if it does not exist although its devices are published.
const (
	NodeReady    = "Ready"
	NodeNotReady = "NotReady"
	NodeGone     = "Gone"
)

func nodeState(facts *cluster.Cluster, name string) string {
	switch node := facts.Snapshot.Node(name); {
	case name == "":
		return ""
	case node == nil && nodeGone(facts, name):
		return NodeGone
	case node == nil:
		return ""
	case notReady(node):
		return NodeNotReady
	default:
		return NodeReady
	}
}

// closeTo returns what the standard attributes say about where a device is plugged in. See
// k8s.io/dynamic-resource-allocation/deviceattribute.
func closeTo(d *cluster.Device) string {
	if root, ok := d.Attributes[deviceattribute.StandardDeviceAttributePCIeRoot]; ok {
		return selector.Plain(root)
	}
	if node, ok := d.Attributes[deviceattribute.StandardDeviceAttributeNUMANode]; ok {
		return "numa " + selector.Plain(node)
	}
	return ""
}

// Pod is a pod that uses claims.
type Pod struct {
	*corev1.Pod
	// Claims are the names of those that exist.
	Claims []string
	// AgeSeconds is how long the pod is there.
	AgeSeconds int64
}

// Space returns the pod's namespace.
func (p *Pod) Space() string { return p.Namespace }

// Pods lists the pods that use claims, and those that wait for devices,
// in the order of the snapshot.
func (v *Inventory) Pods() []Pod {
	var pods []Pod
	waiting := v.cluster.Waiting()
	for _, pod := range v.cluster.Snapshot.Pods {
		var claims []string
		for name := range resourceclaim.PodClaims(pod) {
			claims = append(claims, name)
		}
		waits := len(waiting) > 0 && waiting[0] == pod
		if waits {
			waiting = waiting[1:]
		}
		if len(claims) == 0 && !waits {
			continue
		}
		_, seconds := age(v.cluster, pod.CreationTimestamp)
		pods = append(pods, Pod{pod, claims, seconds})
	}
	return pods
}

// nodeTaints returns the taints of a node that keep pods away or evict them, without the
// taint of a cordoned node.
func nodeTaints(node *corev1.Node) []string {
	var taints []string
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || taint.Key == corev1.TaintNodeUnschedulable {
			continue
		}
		taints = append(taints, taint.ToString())
	}
	return taints
}

// ClosedNodes lists the nodes that are cordoned, not ready or gone, by name, with the
// devices of the pools that are for them alone.
func (v *Inventory) ClosedNodes(pools []api.Pool) []Node {
	closed := map[string]*Node{}
	for i := range pools {
		name := pools[i].Node
		if name == "" {
			continue
		}
		if closed[name] == nil {
			node, state := v.cluster.Snapshot.Node(name), nodeState(v.cluster, name)
			cordoned := node != nil && node.Spec.Unschedulable
			if !cordoned && state != NodeNotReady && state != NodeGone {
				continue
			}
			closed[name] = &Node{Node: api.Node{Name: name, Scope: name, State: state, Cordoned: cordoned}}
		}
		AddCounts(&closed[name].Devices, pools[i].Devices)
	}
	list := make([]Node, 0, len(closed))
	for _, node := range closed {
		list = append(list, *node)
	}
	slices.SortFunc(list, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
