// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Groups has the properties of items that a list of groups needs.
type Groups[T any] struct {
	// By is the property that the items of a group have in common, Of what they are.
	By, Of string
	// Names returns the values of the property, which put the item in as many groups; none
	// puts it in the group without a name.
	Names func(T) []string
	// State returns the state of an item; nil if items have none.
	State func(T) string
	// Devices counts the devices of items; nil if they have none.
	Devices func([]T) api.DeviceCounts
}

// List lists the groups of items by name.
func (g *Groups[T]) List(items []T) []api.Group {
	members := map[string][]T{}
	for _, item := range items {
		names := g.Names(item)
		if len(names) == 0 {
			names = []string{""}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			members[name] = append(members[name], item)
		}
	}
	groups := make([]api.Group, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		group := api.Group{TypeMeta: typeMeta("Group"), By: g.By, Name: name, Of: g.Of, Count: len(members[name])}
		for _, item := range members[name] {
			if g.State == nil || g.State(item) == "" {
				continue
			}
			if group.States == nil {
				group.States = map[string]int{}
			}
			group.States[g.State(item)]++
		}
		if g.Devices != nil {
			counts := g.Devices(members[name])
			group.Devices = &counts
		}
		groups = append(groups, group)
	}
	return groups
}

// ClassesOf lists the classes that a claim asks for.
func ClassesOf(c *api.Claim) []string {
	var classes []string
	for i := range c.Requests {
		if r := &c.Requests[i]; r.DeviceClass != "" {
			classes = append(classes, r.DeviceClass)
		}
		classes = append(classes, c.Requests[i].DeviceClasses...)
	}
	return classes
}

// OwnersOf lists the workloads of the pods that use a claim, and the pods without one.
func OwnersOf(facts *cluster.Cluster, c *api.Claim) []string {
	var owners []string
	for _, pod := range facts.Claims.Users(c.Namespace, c.Name) {
		owners = append(owners, ownerName(pod))
	}
	return owners
}
