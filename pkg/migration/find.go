// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Options select workloads and classes.
type Options struct {
	// Namespace is the only namespace whose workloads and quotas count; empty for all.
	Namespace string
	// Classes has the DeviceClasses for extended resources that the user chose.
	Classes map[string]string
	// Diffs asks for the changes as unified diffs, too.
	Diffs bool
	// Plan is an earlier plan whose steps are compared with the cluster; nil for none.
	Plan *api.Migration
}

// Find returns what has to change. It fails if ctx is done, with [ClassError] if there is no class that
// the options name, and with [ResourceError] if there is no such resource.
func Find(ctx context.Context, c *cluster.Cluster, opts Options) (*api.Migration, error) {
	list, err := inventory.New(c).Classes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list classes: %w", err)
	}
	for _, resource := range slices.Sorted(maps.Keys(opts.Classes)) {
		if class := opts.Classes[resource]; c.Snapshot.Class(class) == nil {
			return nil, &ClassError{Resource: resource, Class: class}
		}
		if known, all := resources(c.Snapshot); all && !slices.Contains(known, resource) {
			return nil, &ResourceError{Resource: resource, Known: known}
		}
	}
	plugins := newPlugins(c.Snapshot)
	ws := &workloads{Cluster: c, classes: &classes{Cluster: c, list: list, chosen: opts.Classes}, plugins: plugins}
	m := &api.Migration{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Migration"},
		Source:   c.Snapshot.Source, Namespace: opts.Namespace,
		Nodes: served(c, plugins), Workloads: []api.MigrationWorkload{}, Assumptions: inventory.Assumptions(c.Snapshot),
	}
	if unknown := plugins.notConfigured(); unknown != "" {
		m.Assumptions = append(m.Assumptions, unknown)
	}
	for _, group := range groups(c.Snapshot, opts.Namespace) {
		w, err := ws.workload(ctx, group)
		if err != nil {
			return nil, err
		}
		if w.Way == api.MigrationClaims && opts.Diffs {
			if w.Diff, err = ws.moving[len(ws.moving)-1].editor.diff(); err != nil {
				return nil, err
			}
		}
		if w.Way == api.MigrationNotPossible || w.Way == api.MigrationUnknown {
			ws.stuck = append(ws.stuck, group)
		}
		m.Workloads = append(m.Workloads, w)
	}
	slices.SortStableFunc(m.Workloads, func(a, b api.MigrationWorkload) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	m.Classes = ws.nameable()
	if opts.Namespace == "" {
		if err := order(ctx, ws, m); err != nil {
			return nil, fmt.Errorf("order the steps: %w", err)
		}
	}
	if gap := c.Snapshot.PlacementGap(); gap != nil && opts.Plan != nil {
		m.Undecided = "neither the order nor the earlier plan is decided: " + gap.Reason
	} else if opts.Plan != nil {
		m.Verified = verify(c.Snapshot, opts.Plan)
	}
	for _, quota := range c.Snapshot.Quotas {
		if opts.Namespace == "" || quota.Namespace == opts.Namespace {
			m.Quotas = append(m.Quotas, ws.classes.quotas(quota)...)
		}
	}
	return m, nil
}

// ClassError means that there is no DeviceClass of the name that was chosen for a resource.
type ClassError struct{ Resource, Class string }

func (e *ClassError) Error() string {
	return fmt.Sprintf("find DeviceClass %s for %s: there is no such class", e.Class, e.Resource)
}

// ResourceError means that nothing has the extended resource that a class was chosen for.
type ResourceError struct {
	Resource string
	// Known are the extended resources that there are, by name.
	Known []string
}

func (e *ResourceError) Error() string {
	text := fmt.Sprintf("find extended resource %s: no node has it, no pod asks for it and no quota limits it", e.Resource)
	if len(e.Known) > 0 {
		text += "; expected " + english.JoinOr(e.Known)
	}
	return text
}

// resources returns the extended resources that nodes have, pods ask for or quotas limit, by name, and
// whether all of these could be read.
func resources(snap *snapshot.Snapshot) (names []string, all bool) {
	for _, resource := range []string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceQuotas} {
		if snap.Gap(resource) != nil {
			return nil, false
		}
	}
	found := map[string]bool{}
	for _, node := range snap.Nodes {
		for name := range node.Status.Allocatable {
			found[string(name)] = cluster.IsExtendedResource(name)
		}
	}
	for _, pod := range snap.Pods {
		for _, name := range cluster.ExtendedResources(pod) {
			found[string(name)] = true
		}
	}
	for _, quota := range snap.Quotas {
		for name := range quota.Spec.Hard {
			if resource, limited := cutRequests(string(name)); limited {
				found[resource] = cluster.IsExtendedResource(corev1.ResourceName(resource))
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, extended bool) bool { return !extended })
	return slices.Sorted(maps.Keys(found)), true
}

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
