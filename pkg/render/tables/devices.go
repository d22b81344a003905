// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Groups lists groups of items that have a property in common. The word is plural, for the
// items.
func Groups(items []*api.Group, by, word string) *metav1.Table {
	number := func(name string, of func(*api.DeviceCounts) int) render.Column[api.Group] {
		return bounds(name,
			func(g *api.Group) int { return of(g.Devices) },
			func(g *api.Group) api.Bound {
				return cmp.Or(g.Devices.Bounds[strings.ToLower(name)], render.UpperBound(name == "Free" && g.Devices.FreeIsUpperBound))
			})
	}
	columns := []render.Column[api.Group]{
		{Name: by, Key: true, Cell: func(g *api.Group) string { return g.Name }},
		numbers(english.Capitalized(word), func(g *api.Group) int { return g.Count }),
	}
	if slices.ContainsFunc(items, func(g *api.Group) bool { return g.States != nil }) {
		columns = append(columns, render.Column[api.Group]{Name: "States", Cell: stateTexts})
	}
	if slices.ContainsFunc(items, func(g *api.Group) bool { return g.Devices != nil }) {
		columns = append(columns, counts(number)...)
	}
	return render.NewTable(items, columns)
}

// stateTexts returns "17 Usable, 1 Incomplete", the most frequent state first.
func stateTexts(g *api.Group) string {
	var parts []string
	for _, state := range slices.SortedFunc(maps.Keys(g.States), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.States[b], g.States[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", g.States[state], state))
	}
	return strings.Join(parts, ", ")
}

// Slices lists ResourceSlices.
func Slices(items []*api.Slice) *metav1.Table {
	return render.NewTable(items, []render.Column[api.Slice]{
		{Name: "Name", Key: true, Cell: func(s *api.Slice) string { return s.Name }},
		{Name: "Scope", Cell: func(s *api.Slice) string { return s.Scope }},
		{Name: "Driver", Cell: func(s *api.Slice) string { return s.Driver }},
		{Name: "Pool", Cell: func(s *api.Slice) string { return s.Pool }},
		numbers("Generation", func(s *api.Slice) int { return int(s.Generation) }),
		numbers("Devices", func(s *api.Slice) int { return s.Devices }),
		bounds("Free", func(s *api.Slice) int { return s.Free }, func(s *api.Slice) api.Bound { return render.UpperBound(s.FreeIsUpperBound) }),
		{Name: "State", Cell: func(s *api.Slice) string { return string(s.State) }},
		ages(func(s *api.Slice) (int64, *metav1.Time) { return s.AgeSeconds, s.Created }),
		{Name: "Reason", Wide: true, Cell: func(s *api.Slice) string { return s.Reason }},
	})
}

// Pools lists resource pools. What a row has no room for is in [PoolDetails].
func Pools(items []*api.Pool) *metav1.Table {
	columns := PoolColumns()
	reason := len(columns) - 1
	columns = slices.Insert(columns, reason, bounds("Available",
		func(p *api.Pool) int { return p.Devices.Available }, func(p *api.Pool) api.Bound { return render.UpperBound(p.Devices.FreeIsUpperBound) }))
	return render.NewTable(items, withGone(items, columns, reason, func(p *api.Pool) int { return p.Devices.Gone }))
}

// PoolColumns returns the columns of [Pools].
func PoolColumns() []render.Column[api.Pool] {
	number := func(name string, of func(*api.DeviceCounts) int) render.Column[api.Pool] {
		return bounds(name,
			func(p *api.Pool) int { return of(&p.Devices) },
			func(p *api.Pool) api.Bound { return p.Devices.Bounds[strings.ToLower(name)] })
	}
	columns := []render.Column[api.Pool]{
		{Name: "Driver", Key: true, Cell: func(p *api.Pool) string { return p.Driver }},
		{Name: "Pool", Key: true, Cell: func(p *api.Pool) string { return p.Name }},
		{Name: "State", Cell: func(p *api.Pool) string { return string(p.State) }},
		{Name: "Slices", Cell: func(p *api.Pool) string { return fmt.Sprintf("%d/%d", p.Slices, p.Declared) }},
	}
	columns = append(columns, counts(number)...)
	return append(columns, render.Column[api.Pool]{Name: "Reason", Wide: true, Cell: func(p *api.Pool) string { return p.Reason }})
}

// Devices lists devices, with the attributes that were asked for.
func Devices(items []*api.Device, attributes []string) *metav1.Table {
	return render.NewTable(items, DeviceColumns(attributes))
}

// DeviceColumns returns the columns of [Devices].
func DeviceColumns(attributes []string) []render.Column[api.Device] {
	columns := []render.Column[api.Device]{
		{Name: "Node", Cell: func(d *api.Device) string { return d.Scope }},
		{Name: "Driver", Key: true, Cell: func(d *api.Device) string { return d.Driver }},
		{Name: "Pool", Key: true, Cell: func(d *api.Device) string { return d.Pool }},
		{Name: "Device", Key: true, Cell: func(d *api.Device) string { return d.Name }},
		{Name: "State", Cell: deviceState},
		{Name: "Claim", Cell: func(d *api.Device) string { return holderTexts(d.Holders) }},
		{Name: "Pods", Cell: func(d *api.Device) string { return podTexts(d.Holders) }},
		{Name: "Health", Cell: healthTexts},
		{Name: "Taints", Wide: true, Cell: func(d *api.Device) string { return taintTexts(d.Taints) }},
		{Name: "Capacity", Wide: true, Cell: func(d *api.Device) string { return capacityTexts(d.Capacity) }},
		{Name: "Network", Wide: true, Cell: networkTexts},
		{Name: "Reason", Wide: true, Cell: deviceReasons},
	}
	for _, name := range attributes {
		columns = append(columns, render.Column[api.Device]{Name: name, Cell: func(d *api.Device) string { return Attribute(d, name) }})
	}
	return columns
}

// Attribute finds an attribute, or a capacity, by its full name or, if that has
// no domain, by the part behind it. It is empty if the device has none.
func Attribute(d *api.Device, name string) string {
	if value, ok := d.Attributes[name]; ok || strings.Contains(name, "/") {
		return value
	}
	for full, value := range d.Attributes {
		if strings.HasSuffix(full, "/"+name) {
			return value
		}
	}
	for _, c := range d.Capacity {
		if c.Name == name || strings.HasSuffix(c.Name, "/"+name) {
			return c.Total
		}
	}
	return ""
}

// Taints lists taints with their devices and pods, and when the next pod is evicted as seen
// at the given time.
func Taints(items []*api.Taint, now time.Time) *metav1.Table {
	return render.NewTable(items, TaintColumns(now))
}

// TaintColumns returns the columns of [Taints].
func TaintColumns(now time.Time) []render.Column[api.Taint] {
	return []render.Column[api.Taint]{
		{Name: "Taint", Key: true, Cell: inventory.TaintText},
		{Name: "From", Cell: func(t *api.Taint) string {
			if t.Rule != "" {
				return "rule " + t.Rule
			}
			return "driver"
		}},
		{Name: "Selects", Cell: func(t *api.Taint) string { return cmp.Or(t.Selector, t.Driver) }},
		numbers("Devices", func(t *api.Taint) int { return len(t.Devices) }),
		bounds("Claims", func(t *api.Taint) int { return len(t.Claims) }, func(t *api.Taint) api.Bound { return render.LowerBound(t.ClaimsAreLowerBounds) }),
		bounds("Pods", func(t *api.Taint) int { return len(t.Pods) }, func(t *api.Taint) api.Bound { return render.LowerBound(t.PodsAreLowerBounds) }),
		{Name: "Next eviction", Cell: func(t *api.Taint) string { return eviction(t, now) }},
		{Name: "Age", Cell: func(t *api.Taint) string {
			if t.Since == nil {
				return ""
			}
			return duration.HumanDuration(max(0, now.Sub(t.Since.Time)))
		}},
		{Name: "Names", Wide: true, Cell: func(t *api.Taint) string { return render.SomeOf(taintedPods(t), len(t.Pods)) }},
		{Name: "Status", Wide: true, Cell: ruleStatus},
	}
}

// Attributes lists what devices publish.
func Attributes(items []*api.Attribute) *metav1.Table {
	return render.NewTable(items, []render.Column[api.Attribute]{
		{Name: "Name", Key: true, Cell: func(a *api.Attribute) string { return a.Name }},
		{Name: "Source", Cell: func(a *api.Attribute) string { return string(a.Source) }},
		{Name: "Type", Cell: func(a *api.Attribute) string { return strings.Join(a.Types, ",") }},
		{
			Name: "Devices",
			Cell: func(a *api.Attribute) string { return fmt.Sprintf("%d/%d", a.Devices, a.TotalDevices) },
			Sort: func(a *api.Attribute) (float64, bool) { return float64(a.Devices), true },
		},
		{Name: "Values", Cell: valueTexts},
		{Name: "Expression", Wide: true, Cell: func(a *api.Attribute) string { return a.Expression }},
		{Name: "Matches", Wide: true, Cell: matchText},
		{Name: "Drivers", Wide: true, Cell: func(a *api.Attribute) string { return render.SomeOf(a.Drivers, len(a.Drivers)) }},
	})
}
