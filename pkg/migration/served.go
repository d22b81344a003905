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

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// The labels of NVIDIA's GPU feature discovery, and the resource that they describe.
const (
	labelReplicas    = "nvidia.com/gpu.replicas"
	labelStrategy    = "nvidia.com/gpu.sharing-strategy"
	labelMIGStrategy = "nvidia.com/mig.strategy"
	labelProduct     = "nvidia.com/gpu.product"
	resourceGPU      = corev1.ResourceName("nvidia.com/gpu")
	// migInfix stands between the GPU and the profile in the product of a MIG device.
	migInfix = "-MIG-"
)

// maxNames limits how many nodes of a group are named.
const maxNames = 10

// served returns the nodes that offer devices in any way, in groups of equal ones, the largest
// group first. Devices that are not bound to one node by its name are left out.
func (f *finder) served() []api.MigrationNodes {
	published := map[string]map[string]int{}
	devices := f.Pools.Devices()
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
	groups := []api.MigrationNodes{}
	for _, node := range f.Snapshot.Nodes {
		g := api.MigrationNodes{Plugins: f.offers(node)}
		for _, driver := range slices.Sorted(maps.Keys(published[node.Name])) {
			d := api.DriverOffer{Driver: driver, Devices: published[node.Name][driver]}
			for i := range g.Plugins {
				if name := g.Plugins[i].Resource; cluster.SameHardware(driver, name) {
					d.SameAs = append(d.SameAs, name)
				}
			}
			g.Drivers = append(g.Drivers, d)
		}
		if len(g.Plugins)+len(g.Drivers) == 0 {
			continue
		}
		key := fmt.Sprintf("%v %v", g.Plugins, g.Drivers)
		if _, found := at[key]; !found {
			at[key] = len(groups)
			groups = append(groups, g)
		}
		group := &groups[at[key]]
		if group.Count++; group.Count <= maxNames {
			group.Names = append(group.Names, node.Name)
		}
	}
	slices.SortStableFunc(groups, func(a, b api.MigrationNodes) int { return cmp.Compare(b.Count, a.Count) })
	return groups
}

// offers returns what device plugins offer on a node, sorted by name.
func (f *finder) offers(node *corev1.Node) []api.PluginOffer {
	var list []api.PluginOffer
	for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
		quantity := node.Status.Allocatable[name]
		if quantity.IsZero() || !cluster.IsExtendedResource(name) {
			continue
		}
		offer := api.PluginOffer{Resource: string(name), Allocatable: quantity.Value()}
		offer.Sharing, offer.Contradiction = f.sharingOn(node, name)
		list = append(list, offer)
	}
	return list
}

// sharing returns how NVIDIA's device plugin divides the GPUs behind a resource, by labels. These
// describe nvidia.com/gpu, and nvidia.com/gpu.shared, which replicas may be called.
func sharing(labels map[string]string, name corev1.ResourceName) api.PluginSharing {
	if name != resourceGPU && name != resourceGPU+".shared" {
		return ""
	}
	replicas, err := strconv.Atoi(labels[labelReplicas])
	product := labels[labelProduct]
	switch shared := err == nil && replicas > 1 || strings.HasSuffix(product, "-SHARED"); {
	case shared && labels[labelStrategy] == string(api.SharingTimeSlicing):
		return api.SharingTimeSlicing
	case shared && labels[labelStrategy] == string(api.SharingMPS):
		return api.SharingMPS
	case shared:
		return api.SharingReplicas
	case labels[labelMIGStrategy] == "single" && strings.Contains(product, migInfix):
		return api.SharingMIG
	default:
		return ""
	}
}
