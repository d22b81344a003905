// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Sharing is the way in which a device plugin divides GPUs, as far as labels of the node tell.
type Sharing string

const (
	// SharingUnknown is set if no label tells of sharing: the plugin may share all the same.
	SharingUnknown Sharing = ""
	// SharingTimeSlicing is set if several containers take turns on one GPU.
	SharingTimeSlicing Sharing = "time-slicing"
	// SharingMPS is set if several containers use one GPU through MPS.
	SharingMPS Sharing = "mps"
	// SharingReplicas is set if a GPU counts several times, and no label tells in which way.
	SharingReplicas Sharing = "replicas"
	// SharingMIG is set if nvidia.com/gpu is a MIG device, by the strategy "single".
	SharingMIG Sharing = "mig-single"
)

// The labels of NVIDIA's GPU feature discovery, and the resource that they describe.
const (
	labelReplicas    = "nvidia.com/gpu.replicas"
	labelStrategy    = "nvidia.com/gpu.sharing-strategy"
	labelMIGStrategy = "nvidia.com/mig.strategy"
	labelProduct     = "nvidia.com/gpu.product"
	resourceGPU      = corev1.ResourceName("nvidia.com/gpu")
)

// Offer is the amount of an extended resource that a device plugin offers on a node.
type Offer struct {
	Resource corev1.ResourceName
	// Allocatable counts what pods can get: with sharing, more than there are GPUs.
	Allocatable int64
	Sharing     Sharing
}

// Published is the number of devices that a driver publishes for one node. Partitions of a GPU
// count beside it, so that it need not be the number of GPUs.
type Published struct {
	Driver  string
	Devices int
	// SameAs are the offered resources that, by their names, are the same hardware. Neither the
	// plugin nor the driver tells which GPUs it has, so that only names prove it.
	SameAs []corev1.ResourceName
}

// NodeGroup has the nodes on which device plugins offer, and drivers publish, the same.
type NodeGroup struct {
	Nodes     []string
	Offers    []Offer
	Published []Published
}

// Twice reports whether the nodes offer hardware both by a device plugin and by a driver, as far
// as names tell.
func (g *NodeGroup) Twice() bool {
	return slices.ContainsFunc(g.Published, func(p Published) bool { return len(p.SameAs) > 0 })
}

// Served returns the nodes that offer devices in any way, in groups of equal ones, the largest
// group first. Devices that are not bound to one node by its name are left out.
func Served(c *cluster.Cluster) []NodeGroup {
	published := map[string]map[string]int{}
	devices := c.Pools.Devices()
	for i := range devices {
		node, _, _ := devices[i].NodeSelection()
		if node == nil {
			continue
		}
		if published[*node] == nil {
			published[*node] = map[string]int{}
		}
		published[*node][devices[i].ID.Driver]++
	}
	at := map[string]int{}
	var groups []NodeGroup
	for _, node := range c.Snapshot.Nodes {
		g := NodeGroup{Offers: offers(node)}
		for _, driver := range slices.Sorted(maps.Keys(published[node.Name])) {
			p := Published{Driver: driver, Devices: published[node.Name][driver]}
			for i := range g.Offers {
				if name := g.Offers[i].Resource; cluster.SameHardware(driver, string(name)) {
					p.SameAs = append(p.SameAs, name)
				}
			}
			g.Published = append(g.Published, p)
		}
		if len(g.Offers)+len(g.Published) == 0 {
			continue
		}
		key := fmt.Sprintf("%v %v", g.Offers, g.Published)
		if _, found := at[key]; !found {
			at[key] = len(groups)
			groups = append(groups, g)
		}
		group := &groups[at[key]]
		group.Nodes = append(group.Nodes, node.Name)
	}
	slices.SortStableFunc(groups, func(a, b NodeGroup) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	return groups
}

// offers returns what device plugins offer on a node, sorted by name.
func offers(node *corev1.Node) []Offer {
	var list []Offer
	for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
		quantity := node.Status.Allocatable[name]
		if quantity.IsZero() || !cluster.IsExtendedResource(name) {
			continue
		}
		list = append(list, Offer{Resource: name, Allocatable: quantity.Value(), Sharing: sharing(node.Labels, name)})
	}
	return list
}

// sharing returns how NVIDIA's device plugin divides the GPUs behind a resource. The labels
// describe nvidia.com/gpu, and nvidia.com/gpu.shared, which replicas may be called.
func sharing(labels map[string]string, name corev1.ResourceName) Sharing {
	if name != resourceGPU && name != resourceGPU+".shared" {
		return SharingUnknown
	}
	replicas, err := strconv.Atoi(labels[labelReplicas])
	product := labels[labelProduct]
	switch shared := err == nil && replicas > 1 || strings.HasSuffix(product, "-SHARED"); {
	case shared && labels[labelStrategy] == string(SharingTimeSlicing):
		return SharingTimeSlicing
	case shared && labels[labelStrategy] == string(SharingMPS):
		return SharingMPS
	case shared:
		return SharingReplicas
	case labels[labelMIGStrategy] == "single" && strings.Contains(product, "-MIG-"):
		return SharingMIG
	default:
		return SharingUnknown
	}
}
