// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

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
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// Column is a column of a table; a wide one is only shown with -o wide.
type Column[T any] struct {
	Name string
	Wide bool
	// Key is true for a column that names the item: it stays on its line.
	Key bool
	// Cell is the text for an item, as it comes from the cluster.
	Cell func(*T) string
	// Sort returns the value to sort by, if that is not the text; ok is false if the item
	// has no such value.
	Sort func(*T) (value float64, ok bool)
}

// Text returns what to print for an item: escaped, and "-" if there is nothing, so that
// lines have the same number of words.
func (c *Column[T]) Text(item *T) string { return cmp.Or(Escape(c.Cell(item)), "-") }

// numbers returns a column of whole numbers.
func numbers[T any](name string, of func(*T) int) Column[T] {
	return bounds(name, of, func(*T) api.Bound { return "" })
}

// bounds returns a column of whole numbers that may only be bounds.
func bounds[T any](name string, of func(*T) int, bound func(*T) api.Bound) Column[T] {
	return Column[T]{
		Name: name,
		Cell: func(item *T) string { return bounded(of(item), bound(item)) },
		Sort: func(item *T) (float64, bool) { return float64(of(item)), true },
	}
}

// newTable fills in the columns for each item.
func newTable[T any](items []*T, columns []Column[T]) *metav1.Table {
	table := &metav1.Table{}
	for _, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.Name, Type: "string"}
		if c.Wide {
			definition.Priority = 1
		}
		if c.Key {
			definition.Format = nameFormat
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, item := range items {
		row := metav1.TableRow{}
		for i := range columns {
			row.Cells = append(row.Cells, columns[i].Text(item))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// Groups lists groups of items that have a property in common. The word is plural, for the
// items.
func Groups(items []*api.Group, by, word string) *metav1.Table {
	number := func(name string, of func(*api.DeviceCounts) int) Column[api.Group] {
		return bounds(name,
			func(g *api.Group) int { return of(g.Devices) },
			func(g *api.Group) api.Bound {
				return cmp.Or(g.Devices.Bounds[strings.ToLower(name)], atMost(name == "Free" && g.Devices.FreeIsUpperBound))
			})
	}
	columns := []Column[api.Group]{
		{Name: by, Key: true, Cell: func(g *api.Group) string { return g.Name }},
		numbers(capitalized(word), func(g *api.Group) int { return g.Count }),
	}
	if slices.ContainsFunc(items, func(g *api.Group) bool { return g.States != nil }) {
		columns = append(columns, Column[api.Group]{Name: "States", Cell: stateTexts})
	}
	if slices.ContainsFunc(items, func(g *api.Group) bool { return g.Devices != nil }) {
		columns = append(columns,
			number("Total", func(c *api.DeviceCounts) int { return c.Total }),
			number("Free", func(c *api.DeviceCounts) int { return c.Free }),
			number("Allocated", func(c *api.DeviceCounts) int { return c.Allocated }),
			number("Shared", func(c *api.DeviceCounts) int { return c.Shared }),
			number("Blocked", func(c *api.DeviceCounts) int { return c.Blocked }),
			number("Tainted", func(c *api.DeviceCounts) int { return c.Tainted }),
			number("Unhealthy", func(c *api.DeviceCounts) int { return c.Unhealthy }),
			number("Unusable", func(c *api.DeviceCounts) int { return c.Unusable }),
		)
	}
	return newTable(items, columns)
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
	return newTable(items, SliceColumns())
}

// SliceColumns returns the columns of [Slices].
func SliceColumns() []Column[api.Slice] {
	return []Column[api.Slice]{
		{Name: "Name", Key: true, Cell: func(s *api.Slice) string { return s.Name }},
		{Name: "Scope", Cell: func(s *api.Slice) string { return s.Scope }},
		{Name: "Driver", Cell: func(s *api.Slice) string { return s.Driver }},
		{Name: "Pool", Cell: func(s *api.Slice) string { return s.Pool }},
		numbers("Generation", func(s *api.Slice) int { return int(s.Generation) }),
		numbers("Devices", func(s *api.Slice) int { return s.Devices }),
		bounds("Free", func(s *api.Slice) int { return s.Free }, func(s *api.Slice) api.Bound { return atMost(s.FreeIsUpperBound) }),
		{Name: "State", Cell: func(s *api.Slice) string { return string(s.State) }},
		ages(func(s *api.Slice) (int64, *metav1.Time) { return s.AgeSeconds, s.Created }),
		{Name: "Reason", Wide: true, Cell: func(s *api.Slice) string { return s.Reason }},
	}
}

// withGone inserts a column that counts gone devices, if there are some.
func withGone[T any](items []*T, columns []Column[T], at int, gone func(*T) int) []Column[T] {
	if !slices.ContainsFunc(items, func(item *T) bool { return gone(item) > 0 }) {
		return columns
	}
	return slices.Insert(columns, at, numbers("Gone", gone))
}

// Pools lists resource pools. What a row has no room for is in [PoolDetails].
func Pools(items []*api.Pool) *metav1.Table {
	columns := PoolColumns()
	reason := len(columns) - 1
	columns = slices.Insert(columns, reason, bounds("Available",
		func(p *api.Pool) int { return p.Devices.Available }, func(p *api.Pool) api.Bound { return atMost(p.Devices.FreeIsUpperBound) }))
	return newTable(items, withGone(items, columns, reason, func(p *api.Pool) int { return p.Devices.Gone }))
}

// PoolColumns returns the columns of [Pools].
func PoolColumns() []Column[api.Pool] {
	number := func(name string, of func(*api.DeviceCounts) int) Column[api.Pool] {
		return bounds(name,
			func(p *api.Pool) int { return of(&p.Devices) },
			func(p *api.Pool) api.Bound { return p.Devices.Bounds[strings.ToLower(name)] })
	}
	return []Column[api.Pool]{
		{Name: "Driver", Key: true, Cell: func(p *api.Pool) string { return p.Driver }},
		{Name: "Pool", Key: true, Cell: func(p *api.Pool) string { return p.Name }},
		{Name: "State", Cell: func(p *api.Pool) string { return string(p.State) }},
		{Name: "Slices", Cell: func(p *api.Pool) string { return fmt.Sprintf("%d/%d", p.Slices, p.Declared) }},
		number("Total", func(c *api.DeviceCounts) int { return c.Total }),
		number("Free", func(c *api.DeviceCounts) int { return c.Free }),
		number("Allocated", func(c *api.DeviceCounts) int { return c.Allocated }),
		number("Shared", func(c *api.DeviceCounts) int { return c.Shared }),
		number("Blocked", func(c *api.DeviceCounts) int { return c.Blocked }),
		number("Tainted", func(c *api.DeviceCounts) int { return c.Tainted }),
		number("Unhealthy", func(c *api.DeviceCounts) int { return c.Unhealthy }),
		number("Unusable", func(c *api.DeviceCounts) int { return c.Unusable }),
		{Name: "Reason", Wide: true, Cell: func(p *api.Pool) string { return p.Reason }},
	}
}

// Devices lists devices, with the attributes that were asked for.
func Devices(items []*api.Device, attributes []string) *metav1.Table {
	return newTable(items, DeviceColumns(attributes))
}

// DeviceColumns returns the columns of [Devices].
func DeviceColumns(attributes []string) []Column[api.Device] {
	columns := []Column[api.Device]{
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
		columns = append(columns, Column[api.Device]{Name: name, Cell: func(d *api.Device) string { return Attribute(d, name) }})
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

// Claims lists ResourceClaims, with their namespaces if asked for. What the flags
// mean, and the network data, is in [ClaimDetails]. Most clusters have no
// ComputeDomains, and then there is no column for them.
func Claims(items []*api.Claim, namespaces bool) *metav1.Table {
	columns := ClaimColumns(namespaces)
	if !slices.ContainsFunc(items, func(c *api.Claim) bool { return len(c.ComputeDomains) > 0 }) {
		columns = slices.DeleteFunc(columns, func(c Column[api.Claim]) bool { return c.Name == domainColumn })
	}
	return newTable(items, columns)
}

const domainColumn = "Compute domain"

// ClaimColumns returns the columns of [Claims].
func ClaimColumns(namespaces bool) []Column[api.Claim] {
	columns := []Column[api.Claim]{
		{Name: "Name", Key: true, Cell: func(c *api.Claim) string { return c.Name }},
		{Name: "State", Cell: func(c *api.Claim) string { return string(c.State) }},
		{Name: "Stage", Cell: func(c *api.Claim) string { return c.Stage }},
		{Name: "Requests", Cell: requestTexts},
		{Name: "Devices", Cell: deviceTexts},
		{Name: "Node", Cell: func(c *api.Claim) string { return c.Scope }},
		{Name: "Pods", Cell: func(c *api.Claim) string { return someOf(c.Pods, c.PodCount) }},
		{Name: "Flags", Cell: flagTexts},
		{Name: "Alignment", Wide: true, Cell: alignmentCell},
		{Name: domainColumn, Wide: true, Cell: domainCell},
		ages(func(c *api.Claim) (int64, *metav1.Time) { return c.AgeSeconds, c.Created }),
	}
	if namespaces {
		columns = append([]Column[api.Claim]{{Name: "Namespace", Key: true, Cell: func(c *api.Claim) string { return c.Namespace }}}, columns...)
	}
	return columns
}

// PendingClaims lists claims without devices and why they have none.
func PendingClaims(items []*api.Claim, namespaces bool) *metav1.Table {
	return newTable(items, PendingColumns(namespaces))
}

// PendingColumns returns the columns of [PendingClaims].
func PendingColumns(namespaces bool) []Column[api.Claim] {
	columns := []Column[api.Claim]{
		{Name: "Name", Key: true, Cell: func(c *api.Claim) string { return c.Name }},
		{Name: "Stage", Cell: func(c *api.Claim) string { return c.Stage }},
		{Name: "Requests", Cell: requestTexts},
		{Name: "Pods", Cell: func(c *api.Claim) string { return someOf(c.Pods, c.PodCount) }},
		ages(func(c *api.Claim) (int64, *metav1.Time) { return c.AgeSeconds, c.Created }),
		{Name: "Why", Cell: func(c *api.Claim) string { return Words(c.Code) }},
		{Name: "Outlook", Cell: func(c *api.Claim) string { return OutlookWords(c.Outlook) }},
		{Name: "Reason", Cell: func(c *api.Claim) string { return c.Reason }},
	}
	if namespaces {
		columns = append([]Column[api.Claim]{{Name: "Namespace", Key: true, Cell: func(c *api.Claim) string { return c.Namespace }}}, columns...)
	}
	return columns
}

// Taints lists taints with their devices and pods, and when the next pod is evicted as seen
// at the given time.
func Taints(items []*api.Taint, now time.Time) *metav1.Table {
	return newTable(items, TaintColumns(now))
}

// TaintColumns returns the columns of [Taints].
func TaintColumns(now time.Time) []Column[api.Taint] {
	return []Column[api.Taint]{
		{Name: "Taint", Key: true, Cell: inventory.TaintText},
		{Name: "From", Cell: func(t *api.Taint) string {
			if t.Rule != "" {
				return "rule " + t.Rule
			}
			return "driver"
		}},
		{Name: "Selects", Cell: func(t *api.Taint) string { return cmp.Or(t.Selector, t.Driver) }},
		numbers("Devices", func(t *api.Taint) int { return len(t.Devices) }),
		bounds("Claims", func(t *api.Taint) int { return len(t.Claims) }, func(t *api.Taint) api.Bound { return atLeast(t.ClaimsAreLowerBounds) }),
		bounds("Pods", func(t *api.Taint) int { return len(t.Pods) }, func(t *api.Taint) api.Bound { return atLeast(t.PodsAreLowerBounds) }),
		{Name: "Next eviction", Cell: func(t *api.Taint) string { return eviction(t, now) }},
		{Name: "Age", Cell: func(t *api.Taint) string {
			if t.Since == nil {
				return ""
			}
			return duration.HumanDuration(max(0, now.Sub(t.Since.Time)))
		}},
		{Name: "Names", Wide: true, Cell: func(t *api.Taint) string { return someOf(taintedPods(t), len(t.Pods)) }},
		{Name: "Status", Wide: true, Cell: ruleStatus},
	}
}

// Classes lists DeviceClasses. For their extended resources, node by node, see
// [ExtendedResources].
func Classes(items []*api.Class) *metav1.Table {
	const afterFree, afterResource = 3, 7
	columns := slices.Insert(ClassColumns(), afterResource,
		bounds("Placeable", func(c *api.Class) int { return c.Placeable.AtLeast }, classPlaceable),
		unlessUnknown("Waiting", func(c *api.Class) int { return c.Waiting }, func(c *api.Class) bool { return !c.WaitingIsUnknown }))
	return newTable(items, withGone(items, columns, afterFree, func(c *api.Class) int { return c.DeviceCounts.Gone }))
}

// ClassColumns returns the columns of [Classes].
func ClassColumns() []Column[api.Class] {
	return []Column[api.Class]{
		{Name: "Name", Key: true, Cell: func(c *api.Class) string { return c.Name }},
		bounds("Devices", func(c *api.Class) int { return c.Devices }, classDevices),
		bounds("Free", func(c *api.Class) int { return c.Free }, classFree),
		bounds("Failing", func(c *api.Class) int { return c.Failing }, classDevices),
		{
			Name: "Claims",
			Cell: func(c *api.Class) string {
				if c.Claims == 0 {
					return AtLeast(0, c.ClaimsAreLowerBounds)
				}
				return fmt.Sprintf("%s (%s allocated)", AtLeast(c.Claims, c.ClaimsAreLowerBounds), AtLeast(c.Allocated, c.ClaimsAreLowerBounds))
			},
			Sort: func(c *api.Class) (float64, bool) { return float64(c.Claims), true },
		},
		{Name: "Drivers", Cell: func(c *api.Class) string { return someOf(c.Drivers, len(c.Drivers)) }},
		{Name: "Extended resource", Cell: func(c *api.Class) string { return c.ExtendedResource }},
		{Name: "Plugin nodes", Wide: true, Cell: func(c *api.Class) string { return someOf(c.PluginNodes, len(c.PluginNodes)) }},
		{Name: "Selectors", Wide: true, Cell: func(c *api.Class) string { return strings.Join(c.Selectors, " && ") }},
		{Name: "Failure", Wide: true, Cell: failureTexts},
	}
}

// Attributes lists what devices publish.
func Attributes(items []*api.Attribute) *metav1.Table {
	return newTable(items, AttributeColumns())
}

// AttributeColumns returns the columns of [Attributes].
func AttributeColumns() []Column[api.Attribute] {
	return []Column[api.Attribute]{
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
		{Name: "Drivers", Wide: true, Cell: func(a *api.Attribute) string { return someOf(a.Drivers, len(a.Drivers)) }},
	}
}

// classDevices returns the bound of a count of devices of a class.
func classDevices(c *api.Class) api.Bound { return atLeast(c.DevicesAreLowerBounds) }

// classFree returns the bound of the free devices.
func classFree(c *api.Class) api.Bound {
	if c.DevicesAreLowerBounds && c.FreeIsUpperBound {
		return api.BoundUnknown
	}
	if c.DevicesAreLowerBounds {
		return api.BoundAtLeast
	}
	return atMost(c.FreeIsUpperBound)
}

// Nodes lists nodes with their devices by class.
func Nodes(items []*api.ListedNode) *metav1.Table {
	return newTable(items, []Column[api.ListedNode]{
		{Name: "Name", Key: true, Cell: func(n *api.ListedNode) string { return n.Name }},
		{Name: "State", Cell: func(n *api.ListedNode) string { return nodeCondition(n.State, n.Cordoned, n.Taints) }},
		numbers("Devices", func(n *api.ListedNode) int { return n.Devices.Total }),
		bounds("Free", func(n *api.ListedNode) int { return n.Devices.Free }, func(n *api.ListedNode) api.Bound { return atMost(n.Devices.FreeIsUpperBound) }),
		{Name: "Placeable by class", Cell: nodeClassTexts},
		{Name: "Drivers", Cell: nodeDriverTexts},
		numbers("Pods", func(n *api.ListedNode) int { return n.Pods }),
		{Name: "Problems", Cell: func(n *api.ListedNode) string {
			var parts []string
			for i := range n.Problems {
				parts = append(parts, n.Problems[i].Message)
			}
			return strings.Join(parts, "; ")
		}},
		{Name: "Taints", Wide: true, Cell: func(n *api.ListedNode) string { return strings.Join(n.Taints, ",") }},
	})
}

// nodeClassTexts returns "gpu.example.com 3": placeable claims of each class.
func nodeClassTexts(n *api.ListedNode) string {
	var parts []string
	for i := range n.Classes {
		c := &n.Classes[i]
		parts = append(parts, c.Class+" "+AtMost(c.Placeable, c.Devices.FreeIsUpperBound))
	}
	return strings.Join(parts, ", ")
}

// nodeDriverTexts returns the drivers with their versions.
func nodeDriverTexts(n *api.ListedNode) string {
	var parts []string
	for i := range n.Drivers {
		parts = append(parts, strings.TrimSpace(n.Drivers[i].Driver+" "+cmp.Or(n.Drivers[i].Version, n.Drivers[i].Image)))
	}
	return strings.Join(parts, ", ")
}

// classPlaceable returns the bound of the claims that can be placed.
func classPlaceable(c *api.Class) api.Bound {
	return placeableBound(&c.Placeable, c.FreeIsUpperBound, c.DevicesAreLowerBounds)
}

func placeableBound(count *api.CopyCount, freeIsUpperBound, devicesAreLowerBounds bool) api.Bound {
	sure := count.AtMost != nil && *count.AtMost == count.AtLeast
	switch {
	case freeIsUpperBound && sure:
		return api.BoundAtMost
	case freeIsUpperBound:
		return api.BoundUnknown
	default:
		return atLeast(!sure || devicesAreLowerBounds)
	}
}

// NodeColumns returns the columns of a list of nodes.
func NodeColumns() []Column[inventory.Node] {
	return []Column[inventory.Node]{
		{Name: "Node", Cell: func(n *inventory.Node) string { return n.Scope }},
		{Name: "State", Cell: func(n *inventory.Node) string { return nodeCondition(n.State, n.Cordoned, n.Taints) }},
		numbers("Total", func(n *inventory.Node) int { return n.Devices.Total }),
		bounds("Free", func(n *inventory.Node) int { return n.Devices.Free }, func(n *inventory.Node) api.Bound { return atMost(n.Devices.FreeIsUpperBound) }),
	}
}

// nodeCondition returns "Ready, cordoned, tainted".
func nodeCondition(state string, cordoned bool, taints []string) string {
	var parts []string
	if state != "" {
		parts = append(parts, state)
	}
	if cordoned {
		parts = append(parts, "cordoned")
	}
	if len(taints) > 0 {
		parts = append(parts, "tainted")
	}
	return strings.Join(parts, ", ")
}

// NodeTaints returns the column for the taints of the nodes themselves.
func NodeTaints() Column[inventory.Node] {
	return Column[inventory.Node]{Name: "Taints", Cell: func(n *inventory.Node) string { return strings.Join(n.Taints, ",") }}
}

// TeamColumns returns the columns of a list of namespaces with their used and awaited
// devices.
func TeamColumns() []Column[inventory.Team] {
	return []Column[inventory.Team]{
		{Name: "Namespace", Cell: func(t *inventory.Team) string { return t.Namespace }},
		{Name: "Class", Cell: func(t *inventory.Team) string { return t.Class }},
		bounds("Used", func(t *inventory.Team) int { return t.Used }, func(t *inventory.Team) api.Bound { return atLeast(t.UsedIsLowerBound) }),
		{
			Name: "Share of class",
			Cell: func(t *inventory.Team) string {
				if t.UsedIsLowerBound {
					return "?"
				}
				return fmt.Sprintf("%.0f %%", 100*t.Share)
			},
			Sort: func(t *inventory.Team) (float64, bool) { return t.Share, !t.UsedIsLowerBound },
		},
		unlessUnknown("Waiting", func(t *inventory.Team) int { return t.Waiting }, func(t *inventory.Team) bool { return !t.PodsAreUnknown }),
		{
			Name: "Longest",
			Cell: func(t *inventory.Team) string {
				if t.Waiting == 0 {
					return ""
				}
				return duration.HumanDuration(time.Duration(t.LongestSeconds) * time.Second)
			},
			Sort: func(t *inventory.Team) (float64, bool) { return float64(t.LongestSeconds), t.Waiting > 0 },
		},
		unlessUnknown("Idle", func(t *inventory.Team) int { return t.Idle }, func(t *inventory.Team) bool { return !t.PodsAreUnknown }),
	}
}

// Usage lists who uses devices.
func Usage(items []*api.Usage, by string) *metav1.Table {
	pods := func(u *api.Usage) bool { return !u.PodsAreUnknown }
	since := func(name string, count func(*api.Usage) int, seconds func(*api.Usage) int64) Column[api.Usage] {
		return Column[api.Usage]{Name: name, Cell: func(u *api.Usage) string {
			if count(u) == 0 || !pods(u) {
				return ""
			}
			return duration.HumanDuration(time.Duration(seconds(u)) * time.Second)
		}}
	}
	waiting, idle := func(u *api.Usage) int { return u.Waiting }, func(u *api.Usage) int { return u.Idle }
	if len(items) > 0 && items[0].Hours != nil {
		hours := func(name string, of func(*api.UsageHours) float64) Column[api.Usage] {
			return Column[api.Usage]{Name: name, Cell: func(u *api.Usage) string { return fmt.Sprintf("%.1f", of(u.Hours)) }}
		}
		return newTable(items, []Column[api.Usage]{
			{Name: by, Key: true, Cell: func(u *api.Usage) string { return u.Name }},
			hours("Device hours", func(h *api.UsageHours) float64 { return h.Devices }),
			hours("Idle hours", func(h *api.UsageHours) float64 { return h.Idle }),
			hours("Waiting hours", func(h *api.UsageHours) float64 { return h.Waiting }),
			bounds("Used now", func(u *api.Usage) int { return u.Used }, func(u *api.Usage) api.Bound { return atLeast(u.UsedIsLowerBound) }),
			unlessUnknown("Waiting now", waiting, pods),
		})
	}
	return newTable(items, []Column[api.Usage]{
		{Name: by, Key: true, Cell: func(u *api.Usage) string { return u.Name }},
		bounds("Used", func(u *api.Usage) int { return u.Used }, func(u *api.Usage) api.Bound { return atLeast(u.UsedIsLowerBound) }),
		{Name: "Share", Cell: func(u *api.Usage) string { return shareText(u.Share) }},
		unlessUnknown("Waiting", waiting, pods),
		since("Longest", waiting, func(u *api.Usage) int64 { return u.LongestSeconds }),
		unlessUnknown("Idle", idle, pods),
		since("Idle for", idle, func(u *api.Usage) int64 { return u.IdleSeconds }),
		{Name: "Classes", Cell: func(u *api.Usage) string {
			var parts []string
			for i := range u.Classes {
				c := &u.Classes[i]
				parts = append(parts, c.Class+" "+AtLeast(c.Used, c.UsedIsLowerBound))
			}
			return strings.Join(parts, ", ")
		}},
		{Name: "Waiting by class", Wide: true, Cell: func(u *api.Usage) string {
			var parts []string
			for i := range u.Classes {
				if c := &u.Classes[i]; c.Waiting > 0 {
					parts = append(parts, fmt.Sprintf("%s %d", c.Class, c.Waiting))
				}
			}
			return strings.Join(parts, ", ")
		}},
	})
}

// shareText returns a share as a percentage, "?" if it is not known.
func shareText(share *float64) string {
	if share == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f%%", 100**share)
}

// unlessUnknown returns a column of numbers of which some are not known.
func unlessUnknown[T any](name string, of func(*T) int, known func(*T) bool) Column[T] {
	return Column[T]{
		Name: name,
		Cell: func(item *T) string {
			if !known(item) {
				return "?"
			}
			return fmt.Sprint(of(item))
		},
		Sort: func(item *T) (float64, bool) { return float64(of(item)), known(item) },
	}
}

// PodColumns returns the columns of a list of pods with claims.
func PodColumns() []Column[inventory.Pod] {
	return []Column[inventory.Pod]{
		{Name: "Namespace", Cell: func(p *inventory.Pod) string { return p.Namespace }},
		{Name: "Name", Cell: func(p *inventory.Pod) string { return p.Name }},
		{Name: "Phase", Cell: func(p *inventory.Pod) string { return string(p.Status.Phase) }},
		{Name: "Node", Cell: func(p *inventory.Pod) string { return p.Spec.NodeName }},
		{Name: "Claims", Cell: func(p *inventory.Pod) string { return someOf(p.Claims, len(p.Claims)) }},
		ages(func(p *inventory.Pod) (int64, *metav1.Time) { return p.AgeSeconds, &p.CreationTimestamp }),
	}
}

// ages returns the column for the time since something was made.
func ages[T any](of func(*T) (seconds int64, created *metav1.Time)) Column[T] {
	return Column[T]{
		Name: "Age",
		Cell: func(item *T) string { return age(of(item)) },
		Sort: func(item *T) (float64, bool) {
			seconds, created := of(item)
			return float64(seconds), created != nil
		},
	}
}

// age returns an age as kubectl writes it, empty if it is not known.
func age(seconds int64, since *metav1.Time) string {
	if since == nil {
		return ""
	}
	return duration.HumanDuration(time.Duration(seconds) * time.Second)
}
