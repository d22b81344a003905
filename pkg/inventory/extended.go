// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// selections has the selections of classes, by the names of the classes.
type selections map[string]selection

func (s selections) of(ctx context.Context, facts *cluster.Cluster, class *resourceapi.DeviceClass, d *cluster.Device) (bool, error) {
	known := s[class.Name]
	if known == nil {
		chosen, err := choose(ctx, facts, facts.Gates.Selectors(), class.Spec.Selectors)
		if err != nil {
			return false, fmt.Errorf("select the devices of class %s: %w", class.Name, err)
		}
		known = chosen.selection()
		s[class.Name] = known
	}
	return known[d.ID], nil
}

// resourceFinder finds who serves extended resources: device plugins, or classes.
type resourceFinder struct {
	eligible *eligibility.Devices
	// known has the selections of classes so far.
	known selections
}

// PluginResources lists the extended resources that device plugins have and that
// no DeviceClass stands for, by name.
func (v *Inventory) PluginResources(ctx context.Context) ([]api.ExtendedResource, error) {
	resources := resourceFinder{v.eligible, nil}
	index := map[corev1.ResourceName]int{}
	var list []api.ExtendedResource
	for _, node := range v.cluster.Snapshot.Nodes {
		for _, name := range v.cluster.Nodes.ExtendedResourcesOf(node) {
			if classNaming(v.cluster, name) != nil {
				continue
			}
			on, err := resources.on(ctx, node, name)
			if err != nil {
				return nil, err
			}
			at, known := index[name]
			if !known {
				at = len(list)
				index[name] = at
				list = append(list, api.ExtendedResource{Name: string(name)})
			}
			list[at].Nodes = append(list[at].Nodes, on)
		}
	}
	slices.SortFunc(list, func(a, b api.ExtendedResource) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// classNaming finds a class for a resource, whether or not the scheduler uses that class.
func classNaming(facts *cluster.Cluster, name corev1.ResourceName) *resourceapi.DeviceClass {
	if class := facts.Claims.ClassOf(name); class != nil {
		return class
	}
	for _, class := range facts.Snapshot.Classes {
		if slices.Contains(resourceNames(class), name) {
			return class
		}
	}
	return nil
}

// resourceNames returns the names under which a class can be asked for, the implicit one
// last.
func resourceNames(class *resourceapi.DeviceClass) []corev1.ResourceName {
	implicit := corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix + class.Name)
	if name := ptr.Deref(class.Spec.ExtendedResourceName, ""); name != "" {
		return []corev1.ResourceName{corev1.ResourceName(name), implicit}
	}
	return []corev1.ResourceName{implicit}
}

// of tells who serves the extended resources of a class, node by node.
func (r resourceFinder) of(ctx context.Context, class *resourceapi.DeviceClass) ([]api.ExtendedResource, error) {
	names := resourceNames(class)
	var list []api.ExtendedResource
	for i, name := range names {
		out := api.ExtendedResource{Name: string(name), Class: class.Name, Problem: unserved(r.eligible.Facts, class, name)}
		implicit := i == len(names)-1
		if taken := r.eligible.Facts.Claims.ClassOf(name); taken == nil || taken.Name == class.Name {
			for _, node := range r.eligible.Facts.Snapshot.Nodes {
				concerned := concerned(r.eligible.Facts, node, name)
				if implicit && !concerned {
					continue
				}
				on, err := r.on(ctx, node, name)
				if err != nil {
					return nil, err
				}
				if concerned || on.Devices > 0 {
					out.Nodes = append(out.Nodes, on)
				}
			}
		}
		if !implicit || len(out.Nodes) > 0 {
			list = append(list, out)
		}
	}
	return list, nil
}

// concerned reports whether a device plugin has registered a resource with a node,
// or pods there ask for it.
func concerned(facts *cluster.Cluster, node *corev1.Node, name corev1.ResourceName) bool {
	requested, _ := facts.Nodes.RequestedOn(node.Name, name)
	_, capacity := node.Status.Capacity[name]
	_, allocatable := node.Status.Allocatable[name]
	return capacity || allocatable || requested > 0
}

// unserved tells why the scheduler does not take a class for a resource that is
// named in it, empty if it does.
func unserved(facts *cluster.Cluster, class *resourceapi.DeviceClass, name corev1.ResourceName) string {
	switch taken := facts.Claims.ClassOf(name); {
	case taken == nil:
		return "the feature gate DRAExtendedResource is off, so that only device plugins serve it"
	case taken.Name != class.Name:
		return fmt.Sprintf("DeviceClass %s names it, too; the scheduler takes the newest class, of two as old the first by name", taken.Name)
	default:
		return ""
	}
}

// on puts what a device plugin has of a resource on a node beside what
// DRA has there. Without a device plugin that has some, and only then, the
// scheduler takes devices: shouldDelegateResourceToDRA of its noderesources
// plugin and filterExtendedResources of dynamicresources.
func (r resourceFinder) on(ctx context.Context, node *corev1.Node, name corev1.ResourceName) (api.ResourceOnNode, error) {
	capacity, allocatable := node.Status.Capacity[name], node.Status.Allocatable[name]
	out := api.ResourceOnNode{Node: node.Name, PluginCapacity: capacity.Value(), PluginAllocatable: allocatable.Value()}
	if r.eligible.Facts.Snapshot.Gap(snapshot.ResourcePods) == nil {
		requested, ofDRA := r.eligible.Facts.Nodes.RequestedOn(node.Name, name)
		out.Requested, out.RequestedOfDRA = &requested, ofDRA
	}
	class := r.eligible.Facts.Claims.ClassOf(name)
	if class != nil {
		pools, err := r.eligible.Facts.Pools.For(node)
		if err != nil {
			return out, fmt.Errorf("look at the slices from node %s: %w", node.Name, err)
		}
		for _, pool := range pools {
			for i := range pool.Devices {
				d := &pool.Devices[i]
				matches, err := r.known.of(ctx, r.eligible.Facts, class, d)
				if err != nil {
					return out, err
				}
				if !matches {
					continue
				}
				out.Devices++
				if state, _ := deviceState(r.eligible, d); state == api.DeviceStateFree {
					out.Free++
				}
			}
		}
	}
	switch {
	case out.PluginAllocatable > 0:
		out.ServedBy = api.ServedByPlugin
	case out.Devices > 0:
		out.ServedBy = api.ServedByDRA
	}
	return out, nil
}

// ResourceNotes say who has how much of a resource on the node, and what follows from it.
// The class is empty if none stands for the resource.
func ResourceNotes(on *api.ResourceOnNode, class string) []string {
	var notes []string
	requested := ""
	if on.Requested != nil {
		requested = fmt.Sprintf(", pods request %d", *on.Requested)
		if on.RequestedOfDRA > 0 && on.PluginAllocatable > 0 {
			requested += fmt.Sprintf(" (%d of that from DRA)", on.RequestedOfDRA)
		}
	}
	switch {
	case on.PluginAllocatable > 0 && on.PluginAllocatable < on.PluginCapacity:
		notes = append(notes, fmt.Sprintf("device plugin has %d, %d of them not allocatable%s", on.PluginCapacity, on.PluginCapacity-on.PluginAllocatable, requested))
	case on.PluginAllocatable > 0:
		notes = append(notes, fmt.Sprintf("device plugin has %d%s", on.PluginAllocatable, requested))
	case on.PluginCapacity > 0:
		notes = append(notes, fmt.Sprintf("device plugin has %d, none of them allocatable%s", on.PluginCapacity, requested))
	case requested != "" && *on.Requested > 0:
		notes = append(notes, fmt.Sprintf("pods request %d", *on.Requested))
	}
	switch {
	case class == "":
	case on.Devices > 0:
		notes = append(notes, fmt.Sprintf("DeviceClass %s has %d, %d free", class, on.Devices, on.Free))
	default:
		notes = append(notes, fmt.Sprintf("DeviceClass %s has none here", class))
	}
	if on.PluginAllocatable > 0 && on.Devices > 0 {
		notes = append(notes, "both: the scheduler takes it from the device plugin alone here, and devices of the class are for claims")
	}
	return notes
}
