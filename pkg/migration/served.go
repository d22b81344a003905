// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// maxNames limits how many nodes of a group are named.
const maxNames = 10

// served returns the nodes that offer devices in any way, in groups of equal ones, the largest
// group first. Devices that are not bound to one node by its name are left out.
func served(c *cluster.Cluster, p *plugins) []api.MigrationNodes {
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
	groups := []api.MigrationNodes{}
	for _, node := range c.Snapshot.Nodes {
		g := api.MigrationNodes{Plugins: p.offers(node)}
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
