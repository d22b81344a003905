// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Classes lists DeviceClasses. For their extended resources, node by node, see
// [ExtendedResources].
func Classes(items []*api.Class) *metav1.Table {
	const afterFree, afterResource = 3, 7
	columns := slices.Insert(ClassColumns(), afterResource,
		bounds("Placeable", func(c *api.Class) int { return c.Placeable.AtLeast }, classPlaceable),
		unlessUnknown("Waiting", func(c *api.Class) int { return c.Waiting }, func(c *api.Class) bool { return !c.WaitingIsUnknown }))
	return render.NewTable(items, withGone(items, columns, afterFree, func(c *api.Class) int { return c.DeviceCounts.Gone }))
}

// ClassColumns returns the columns of [Classes].
func ClassColumns() []render.Column[api.Class] {
	return []render.Column[api.Class]{
		{Name: "Name", Key: true, Cell: func(c *api.Class) string { return c.Name }},
		bounds("Devices", func(c *api.Class) int { return c.Devices }, classDevices),
		bounds("Free", func(c *api.Class) int { return c.Free }, classFree),
		bounds("Failing", func(c *api.Class) int { return c.Failing }, classDevices),
		{
			Name: "Claims",
			Cell: func(c *api.Class) string {
				if c.Claims == 0 {
					return render.AtLeast(0, c.ClaimsAreLowerBounds)
				}
				return fmt.Sprintf("%s (%s allocated)", render.AtLeast(c.Claims, c.ClaimsAreLowerBounds), render.AtLeast(c.Allocated, c.ClaimsAreLowerBounds))
			},
			Sort: func(c *api.Class) (float64, bool) { return float64(c.Claims), true },
		},
		{Name: "Drivers", Cell: func(c *api.Class) string { return render.SomeOf(c.Drivers, len(c.Drivers)) }},
		{Name: "Extended resource", Cell: func(c *api.Class) string { return c.ExtendedResource }},
		{Name: "Plugin nodes", Wide: true, Cell: func(c *api.Class) string { return render.SomeOf(c.PluginNodes, len(c.PluginNodes)) }},
		{Name: "Selectors", Wide: true, Cell: func(c *api.Class) string { return strings.Join(c.Selectors, " && ") }},
		{Name: "Failure", Wide: true, Cell: failureTexts},
	}
}

// classDevices returns the bound of a count of devices of a class.
func classDevices(c *api.Class) api.Bound { return render.LowerBound(c.DevicesAreLowerBounds) }

// classFree returns the bound of the free devices.
func classFree(c *api.Class) api.Bound {
	if c.DevicesAreLowerBounds && c.FreeIsUpperBound {
		return api.BoundUnknown
	}
	if c.DevicesAreLowerBounds {
		return api.BoundAtLeast
	}
	return render.UpperBound(c.FreeIsUpperBound)
}

// classPlaceable returns the bound of the claims that can be placed.
func classPlaceable(c *api.Class) api.Bound {
	return render.PlaceableBound(&c.Placeable, c.FreeIsUpperBound, c.DevicesAreLowerBounds)
}
