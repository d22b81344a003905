// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Claims lists ResourceClaims, with their namespaces if asked for. What the flags
// mean, and the network data, is in [ClaimDetails]. Most clusters have no
// ComputeDomains, and then there is no column for them.
func Claims(items []*api.Claim, namespaces bool) *metav1.Table {
	columns := ClaimColumns(namespaces)
	if !slices.ContainsFunc(items, func(c *api.Claim) bool { return len(c.ComputeDomains) > 0 }) {
		columns = slices.DeleteFunc(columns, func(c render.Column[api.Claim]) bool { return c.Name == domainColumn })
	}
	return render.NewTable(items, columns)
}

const domainColumn = "Compute domain"

// ClaimColumns returns the columns of [Claims].
func ClaimColumns(namespaces bool) []render.Column[api.Claim] {
	columns := []render.Column[api.Claim]{
		{Name: "Name", Key: true, Cell: func(c *api.Claim) string { return c.Name }},
		{Name: "State", Cell: func(c *api.Claim) string { return string(c.State) }},
		{Name: "Stage", Cell: func(c *api.Claim) string { return c.Stage }},
		{Name: "Requests", Cell: requestTexts},
		{Name: "Devices", Cell: deviceTexts},
		{Name: "Node", Cell: func(c *api.Claim) string { return c.Scope }},
		{Name: "Pods", Cell: func(c *api.Claim) string { return render.SomeOf(c.Pods, c.PodCount) }},
		{Name: "Flags", Cell: flagTexts},
		{Name: "Alignment", Wide: true, Cell: alignmentCell},
		{Name: domainColumn, Wide: true, Cell: domainCell},
		ages(func(c *api.Claim) (int64, *metav1.Time) { return c.AgeSeconds, c.Created }),
	}
	if namespaces {
		columns = append([]render.Column[api.Claim]{{Name: "Namespace", Key: true, Cell: func(c *api.Claim) string { return c.Namespace }}}, columns...)
	}
	return columns
}

// PendingClaims lists claims without devices and why they have none.
func PendingClaims(items []*api.Claim, namespaces bool) *metav1.Table {
	columns := []render.Column[api.Claim]{
		{Name: "Name", Key: true, Cell: func(c *api.Claim) string { return c.Name }},
		{Name: "Stage", Cell: func(c *api.Claim) string { return c.Stage }},
		{Name: "Requests", Cell: requestTexts},
		{Name: "Pods", Cell: func(c *api.Claim) string { return render.SomeOf(c.Pods, c.PodCount) }},
		ages(func(c *api.Claim) (int64, *metav1.Time) { return c.AgeSeconds, c.Created }),
		{Name: "Why", Cell: func(c *api.Claim) string { return render.Words(c.Code) }},
		{Name: "Outlook", Cell: func(c *api.Claim) string { return render.OutlookWords(c.Outlook) }},
		{Name: "Reason", Cell: func(c *api.Claim) string { return c.Reason }},
	}
	if namespaces {
		columns = append([]render.Column[api.Claim]{{Name: "Namespace", Key: true, Cell: func(c *api.Claim) string { return c.Namespace }}}, columns...)
	}
	return render.NewTable(items, columns)
}

// PodColumns returns the columns of a list of pods with claims.
func PodColumns() []render.Column[inventory.Pod] {
	return []render.Column[inventory.Pod]{
		{Name: "Namespace", Cell: func(p *inventory.Pod) string { return p.Namespace }},
		{Name: "Name", Cell: func(p *inventory.Pod) string { return p.Name }},
		{Name: "Phase", Cell: func(p *inventory.Pod) string { return string(p.Status.Phase) }},
		{Name: "Node", Cell: func(p *inventory.Pod) string { return p.Spec.NodeName }},
		{Name: "Claims", Cell: func(p *inventory.Pod) string { return render.SomeOf(p.Claims, len(p.Claims)) }},
		ages(func(p *inventory.Pod) (int64, *metav1.Time) { return p.AgeSeconds, &p.CreationTimestamp }),
	}
}

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
