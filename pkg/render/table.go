// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// column is one of a table; a wide one is only there with -o wide.
type column[T any] struct {
	name string
	wide bool
	cell func(*T) string
}

// newTable fills in the columns for each item. Everything is escaped, and an
// empty cell becomes "-", so that lines have the same number of words.
func newTable[T any](items []*T, columns []column[T]) *metav1.Table {
	table := &metav1.Table{}
	for _, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.name, Type: "string"}
		if c.wide {
			definition.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, item := range items {
		row := metav1.TableRow{}
		for _, c := range columns {
			row.Cells = append(row.Cells, orElse(Escape(c.cell(item)), "-"))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// Slices lists ResourceSlices.
func Slices(items []*inventory.Slice) *metav1.Table {
	return newTable(items, []column[inventory.Slice]{
		{name: "Name", cell: func(s *inventory.Slice) string { return s.Name }},
		{name: "Scope", cell: func(s *inventory.Slice) string { return s.Scope }},
		{name: "Driver", cell: func(s *inventory.Slice) string { return s.Driver }},
		{name: "Pool", cell: func(s *inventory.Slice) string { return s.Pool }},
		{name: "Generation", cell: func(s *inventory.Slice) string { return fmt.Sprint(s.Generation) }},
		{name: "Devices", cell: func(s *inventory.Slice) string { return fmt.Sprint(s.Devices) }},
		{name: "Free", cell: func(s *inventory.Slice) string { return fmt.Sprint(s.Free) }},
		{name: "State", cell: func(s *inventory.Slice) string { return string(s.State) }},
		{name: "Age", cell: func(s *inventory.Slice) string { return age(s.AgeSeconds, s.Created) }},
		{name: "Reason", wide: true, cell: func(s *inventory.Slice) string { return s.Reason }},
	})
}

// Pools lists resource pools.
func Pools(items []*inventory.Pool) *metav1.Table {
	number := func(of func(*inventory.DeviceCounts) int) func(*inventory.Pool) string {
		return func(p *inventory.Pool) string { return fmt.Sprint(of(&p.Devices)) }
	}
	return newTable(items, []column[inventory.Pool]{
		{name: "Driver", cell: func(p *inventory.Pool) string { return p.Driver }},
		{name: "Pool", cell: func(p *inventory.Pool) string { return p.Name }},
		{name: "State", cell: func(p *inventory.Pool) string { return string(p.State) }},
		{name: "Slices", cell: func(p *inventory.Pool) string { return fmt.Sprintf("%d/%d", p.Slices, p.Declared) }},
		{name: "Total", cell: number(func(c *inventory.DeviceCounts) int { return c.Total })},
		{name: "Free", cell: number(func(c *inventory.DeviceCounts) int { return c.Free })},
		{name: "Allocated", cell: number(func(c *inventory.DeviceCounts) int { return c.Allocated })},
		{name: "Shared", cell: number(func(c *inventory.DeviceCounts) int { return c.Shared })},
		{name: "Blocked", cell: number(func(c *inventory.DeviceCounts) int { return c.Blocked })},
		{name: "Tainted", cell: number(func(c *inventory.DeviceCounts) int { return c.Tainted })},
		{name: "Unhealthy", cell: number(func(c *inventory.DeviceCounts) int { return c.Unhealthy })},
		{name: "Unusable", cell: number(func(c *inventory.DeviceCounts) int { return c.Unusable })},
		{name: "Reason", wide: true, cell: func(p *inventory.Pool) string { return p.Reason }},
		{name: "Counters", wide: true, cell: func(p *inventory.Pool) string { return counterTexts(p.Counters) }},
		{name: "Capacity", wide: true, cell: func(p *inventory.Pool) string { return capacityTexts(p.Capacity) }},
		{name: "Fits", wide: true, cell: partitionTexts},
	})
}

// Devices lists devices, with the attributes that were asked for.
func Devices(items []*inventory.Device, attributes []string) *metav1.Table {
	columns := []column[inventory.Device]{
		{name: "Node", cell: func(d *inventory.Device) string { return d.Scope }},
		{name: "Driver", cell: func(d *inventory.Device) string { return d.Driver }},
		{name: "Pool", cell: func(d *inventory.Device) string { return d.Pool }},
		{name: "Device", cell: func(d *inventory.Device) string { return d.Name }},
		{name: "State", cell: func(d *inventory.Device) string { return string(d.State) }},
		{name: "Claim", cell: func(d *inventory.Device) string { return holderTexts(d.Holders) }},
		{name: "Pods", cell: func(d *inventory.Device) string { return podTexts(d.Holders) }},
		{name: "Health", cell: func(d *inventory.Device) string { return d.Health }},
		{name: "Taints", wide: true, cell: func(d *inventory.Device) string { return taintTexts(d.Taints) }},
		{name: "Capacity", wide: true, cell: func(d *inventory.Device) string { return capacityTexts(d.Capacity) }},
		{name: "Network", wide: true, cell: networkTexts},
		{name: "Reason", wide: true, cell: func(d *inventory.Device) string { return d.Reason }},
	}
	for _, name := range attributes {
		columns = append(columns, column[inventory.Device]{name: name, cell: func(d *inventory.Device) string { return attributeOf(d, name) }})
	}
	return newTable(items, columns)
}

// attributeOf finds an attribute by its full name or, if that has no domain,
// by the part behind it.
func attributeOf(d *inventory.Device, name string) string {
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

// Claims lists ResourceClaims, with their namespaces if asked for.
func Claims(items []*inventory.Claim, namespaces bool) *metav1.Table {
	columns := []column[inventory.Claim]{
		{name: "Name", cell: func(c *inventory.Claim) string { return c.Name }},
		{name: "State", cell: func(c *inventory.Claim) string { return string(c.State) }},
		{name: "Requests", cell: requestTexts},
		{name: "Devices", cell: deviceTexts},
		{name: "Node", cell: func(c *inventory.Claim) string { return c.Scope }},
		{name: "Pods", cell: func(c *inventory.Claim) string { return someOf(c.Pods, c.PodCount) }},
		{name: "Flags", cell: flagTexts},
		{name: "Age", cell: func(c *inventory.Claim) string { return age(c.AgeSeconds, c.Created) }},
		{name: "Network", wide: true, cell: claimNetworkTexts},
	}
	if namespaces {
		columns = append([]column[inventory.Claim]{{name: "Namespace", cell: func(c *inventory.Claim) string { return c.Namespace }}}, columns...)
	}
	return newTable(items, columns)
}

// PendingClaims lists claims without devices and why they have none.
func PendingClaims(items []*inventory.Claim, namespaces bool) *metav1.Table {
	columns := []column[inventory.Claim]{
		{name: "Name", cell: func(c *inventory.Claim) string { return c.Name }},
		{name: "Requests", cell: requestTexts},
		{name: "Pods", cell: func(c *inventory.Claim) string { return someOf(c.Pods, c.PodCount) }},
		{name: "Age", cell: func(c *inventory.Claim) string { return age(c.AgeSeconds, c.Created) }},
		{name: "Code", cell: func(c *inventory.Claim) string { return c.Code }},
		{name: "Reason", cell: func(c *inventory.Claim) string { return c.Reason }},
	}
	if namespaces {
		columns = append([]column[inventory.Claim]{{name: "Namespace", cell: func(c *inventory.Claim) string { return c.Namespace }}}, columns...)
	}
	return newTable(items, columns)
}

// Taints lists taints with what is under them, and when the next pod is evicted
// as seen at the given time.
func Taints(items []*inventory.Taint, now time.Time) *metav1.Table {
	return newTable(items, []column[inventory.Taint]{
		{name: "Taint", cell: func(t *inventory.Taint) string { return t.Names()[0] }},
		{name: "From", cell: func(t *inventory.Taint) string {
			if t.Rule != "" {
				return "rule " + t.Rule
			}
			return "driver"
		}},
		{name: "Selects", cell: func(t *inventory.Taint) string { return orElse(t.Selector, t.Driver) }},
		{name: "Devices", cell: func(t *inventory.Taint) string { return fmt.Sprint(len(t.Devices)) }},
		{name: "Claims", cell: func(t *inventory.Taint) string { return fmt.Sprint(len(t.Claims)) }},
		{name: "Pods", cell: func(t *inventory.Taint) string { return fmt.Sprint(len(t.Pods)) }},
		{name: "Next eviction", cell: func(t *inventory.Taint) string { return eviction(t, now) }},
		{name: "Age", cell: func(t *inventory.Taint) string {
			if t.Since == nil {
				return ""
			}
			return duration.HumanDuration(max(0, now.Sub(t.Since.Time)))
		}},
		{name: "Names", wide: true, cell: func(t *inventory.Taint) string { return someOf(taintedPods(t), len(t.Pods)) }},
		{name: "Status", wide: true, cell: ruleStatus},
	})
}

// Classes lists DeviceClasses.
func Classes(items []*inventory.Class) *metav1.Table {
	return newTable(items, []column[inventory.Class]{
		{name: "Name", cell: func(c *inventory.Class) string { return c.Name }},
		{name: "Devices", cell: func(c *inventory.Class) string { return fmt.Sprint(c.Devices) }},
		{name: "Free", cell: func(c *inventory.Class) string { return fmt.Sprint(c.Free) }},
		{name: "Failing", cell: func(c *inventory.Class) string { return fmt.Sprint(c.Failing) }},
		{name: "Claims", cell: func(c *inventory.Class) string { return fmt.Sprint(c.Claims) }},
		{name: "Allocated", cell: func(c *inventory.Class) string { return fmt.Sprint(c.Allocated) }},
		{name: "Drivers", cell: func(c *inventory.Class) string { return someOf(c.Drivers, len(c.Drivers)) }},
		{name: "Extended resource", cell: func(c *inventory.Class) string { return c.ExtendedResource }},
		{name: "Plugin nodes", wide: true, cell: func(c *inventory.Class) string { return someOf(c.PluginNodes, len(c.PluginNodes)) }},
		{name: "Selectors", wide: true, cell: func(c *inventory.Class) string { return strings.Join(c.Selectors, " && ") }},
		{name: "Failure", wide: true, cell: func(c *inventory.Class) string { return c.Failure }},
	})
}

// age is as kubectl writes it, empty if it is not known.
func age(seconds int64, since *metav1.Time) string {
	if since == nil {
		return ""
	}
	return duration.HumanDuration(time.Duration(seconds) * time.Second)
}
