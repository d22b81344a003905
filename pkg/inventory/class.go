// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// Classes lists all DeviceClasses by name, with the devices that they select.
func (v *Inventory) Classes(ctx context.Context) ([]Class, error) {
	classes := make([]Class, 0, len(v.snap.Classes))
	for _, class := range v.snap.Classes {
		described, err := v.class(ctx, class)
		if err != nil {
			return nil, err
		}
		classes = append(classes, described)
	}
	return classes, nil
}

func (v *Inventory) class(ctx context.Context, class *resourceapi.DeviceClass) (Class, error) {
	out := Class{
		TypeMeta: typeMeta("Class"), Name: class.Name, Labels: class.Labels,
		ExtendedResource: ptr.Deref(class.Spec.ExtendedResourceName, ""),
	}
	for _, s := range class.Spec.Selectors {
		if s.CEL != nil {
			out.Selectors = append(out.Selectors, s.CEL.Expression)
		}
	}
	all := v.alloc.Devices()
	for i := range all {
		d := &all[i]
		matches, err := v.alloc.Selects(ctx, class.Spec.Selectors, d)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err != nil:
			out.Failing++
			if out.Failure == "" {
				out.Failure = err.Error()
			}
			continue
		case !matches:
			continue
		}
		out.Devices++
		if state, _ := v.deviceState(d); state == DeviceFree {
			out.Free++
		}
		if !slices.Contains(out.Drivers, d.ID.Driver) {
			out.Drivers = append(out.Drivers, d.ID.Driver)
		}
	}
	for _, claim := range v.snap.Claims {
		if !asksFor(claim, class.Name) {
			continue
		}
		out.Claims++
		if claim.Status.Allocation != nil {
			out.Allocated++
		}
	}
	out.PluginNodes = v.pluginNodes(class)
	return out, nil
}

// pluginNodes lists the nodes where a device plugin advertises the extended
// resource of a class.
func (v *Inventory) pluginNodes(class *resourceapi.DeviceClass) []string {
	names := []corev1.ResourceName{corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix + class.Name)}
	if name := class.Spec.ExtendedResourceName; name != nil {
		names = append(names, corev1.ResourceName(*name))
	}
	var nodes []string
	for _, node := range v.snap.Nodes {
		if slices.ContainsFunc(names, func(name corev1.ResourceName) bool {
			quantity, ok := node.Status.Allocatable[name]
			return ok && !quantity.IsZero()
		}) {
			nodes = append(nodes, node.Name)
		}
	}
	return nodes
}
