// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"io"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// PoolDetails draws details of pools for which a row of a table has no room: how much of
// capacity and counters is used and by which devices, which partitions still fit, which
// devices are unhealthy. Pools without any of that are left out.
func PoolDetails(w io.Writer, pools []*api.Pool, opts render.Options) error {
	p := render.NewPage(opts)
	for _, pool := range pools {
		writePool(p, pool)
	}
	return writeDetails(w, p)
}

// writeDetails puts a blank line before and behind the details, if there are any.
func writeDetails(w io.Writer, p *render.Page) error {
	if p.Buf.Len() == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", p.Buf.Bytes()); err != nil {
		return fmt.Errorf("write the details: %w", err)
	}
	return nil
}

// ClaimDetails draws the drivers' status of the devices of claims, and the meaning of the
// claims' flags. Claims without either are left out.
func ClaimDetails(w io.Writer, claims []*api.Claim, opts render.Options) error {
	p := render.NewPage(opts)
	for _, claim := range claims {
		writeClaimDetails(p, claim)
	}
	return writeDetails(w, p)
}

func writeClaimDetails(p *render.Page, c *api.Claim) {
	var reports [][]render.Cell
	for _, r := range c.Requests {
		for i := range r.Devices {
			for _, text := range []string{render.NetworkText(r.Devices[i].Status), render.DataText(r.Devices[i].Status)} {
				if text != "" {
					reports = append(reports, []render.Cell{{Text: r.Devices[i].Pool + "/" + r.Devices[i].Device}, {Text: text}})
				}
			}
		}
	}
	if len(reports)+len(c.Flags) == 0 {
		return
	}
	p.Text(0, render.Strong, "Claim "+render.Qualified(c.Namespace, c.Name))
	p.Rows(2, reports, 30)
	for _, flag := range c.Flags {
		p.Text(2, render.Plain, string(flag.Name)+": "+flag.Message)
	}
}

func writePool(p *render.Page, pool *api.Pool) {
	if len(pool.Capacity)+len(pool.Counters)+len(pool.Partitions)+len(pool.Unhealthy) == 0 {
		return
	}
	p.Text(0, render.Strong, "Pool "+pool.Driver+"/"+pool.Name)
	var lines [][]render.Cell
	add := func(name, consumed, total string, percent int, lower bool, by []string) {
		who := []render.Cell{{}, {}}
		if len(by) > 0 {
			who = []render.Cell{{Text: "by"}, {Text: strings.Join(english.Collapse(by), ", ")}}
		}
		text := least(lower) + inventory.QuantityText(consumed) + "/" + inventory.QuantityText(total)
		lines = append(lines, append([]render.Cell{{Text: name}, {Text: render.Bar(percent)}, {Text: text}}, who...))
	}
	for i := range pool.Capacity {
		c := &pool.Capacity[i]
		add(render.ShortName(c.Name), c.Consumed, c.Total, c.ConsumedPercent, c.ConsumedIsLowerBound, nil)
	}
	for i := range pool.Counters {
		c := &pool.Counters[i]
		add(c.CounterSet+"/"+c.Name, c.Consumed, c.Total, c.ConsumedPercent, c.ConsumedIsLowerBound, c.UsedBy)
	}
	p.Rows(2, lines, 40, render.BarWidth+2, 20, len("by"))
	for i := range pool.Partitions {
		if partition := &pool.Partitions[i]; partition.MoreFit != nil {
			p.Text(2, render.Plain, fmt.Sprintf("%s more of %s would fit; %d of %s allocated",
				render.AtMost(*partition.MoreFit, partition.MoreFitIsUpperBound), partition.Type, partition.Allocated, english.Count(partition.Devices, "device")))
		}
	}
	for i := range pool.Unhealthy {
		p.Text(2, render.Bad, "unhealthy: "+pool.Unhealthy[i].Name+english.PrecededBy(": ", pool.Unhealthy[i].Message))
	}
}

// ClassDetails draws where the devices of classes are idle and why, and the servers of extended
// resources: the device plugins and DRA side by side. Equal nodes share a line.
func ClassDetails(w io.Writer, classes []*api.Class, resources []api.ExtendedResource, opts render.Options) error {
	p := render.NewPage(opts)
	for _, c := range classes {
		texts := render.IdleTexts(&api.ClassCapacity{Devices: c.DeviceCounts, Placeable: &c.Placeable, PlaceableNodes: c.PlaceableNodes})
		if len(texts) > 0 {
			p.Text(0, render.Strong, c.Name)
		}
		for _, text := range texts {
			p.Text(2, render.Plain, text)
		}
	}
	for i := range resources {
		writeExtendedResource(p, &resources[i])
	}
	return writeDetails(w, p)
}

func writeExtendedResource(p *render.Page, r *api.ExtendedResource) {
	title := "Extended resource " + r.Name
	switch {
	case r.Problem != "":
		title += ": DeviceClass " + r.Class + " does not serve it: " + r.Problem
	case r.Class == "":
		title += ": no DeviceClass, only device plugins"
	default:
		title += ": DeviceClass " + r.Class
	}
	p.Text(0, render.Strong, title)
	class := r.Class
	switch {
	case r.Problem != "":
		class = ""
	case len(r.Nodes) == 0:
		p.Text(2, render.Plain, "no node has any")
	}
	var order []string
	nodes := map[string][]string{}
	for i := range r.Nodes {
		text := strings.Join(inventory.ResourceNotes(&r.Nodes[i], class), "; ")
		if nodes[text] == nil {
			order = append(order, text)
		}
		nodes[text] = append(nodes[text], r.Nodes[i].Node)
	}
	rows := make([][]render.Cell, 0, len(order))
	for _, text := range order {
		rows = append(rows, []render.Cell{{Text: strings.Join(someNodes(nodes[text]), ", ")}, {Text: text}})
	}
	p.Rows(2, rows, 30)
}

// someNodes names a few nodes, and counts the rest.
func someNodes(names []string) []string {
	short := english.Collapse(names)
	if len(short) <= render.InCell {
		return short
	}
	return append(slices.Clone(names[:render.InCell]), fmt.Sprintf("%d more", len(names)-render.InCell))
}

// SliceTotal returns the line below a list of slices. It ends with where to read what the
// problems are, if that is not empty.
func SliceTotal(t inventory.SliceTotal, where string) string {
	text := fmt.Sprintf("%s, %s, %s free", english.Count(t.Slices, "slice"), english.Count(t.Devices, "device"), render.AtMost(t.Free, t.FreeIsUpperBound))
	if t.Problems > 0 {
		text += fmt.Sprintf("; %d with problems%s", t.Problems, where)
	}
	return text
}

// PoolTotal returns the line below a list of pools. It ends with where to read why some are
// not usable, if that is not empty.
func PoolTotal(t inventory.PoolTotal, where string) string {
	text := fmt.Sprintf("%s, %s, %s free", english.Count(t.Pools, "pool"), english.Count(t.Devices.Total, "device"), render.AtMost(t.Devices.Free, t.Devices.FreeIsUpperBound))
	if t.Devices.Gone > 0 {
		text += fmt.Sprintf(", %d gone", t.Devices.Gone)
	}
	if t.Devices.Unhealthy > 0 {
		text += fmt.Sprintf(", %d unhealthy", t.Devices.Unhealthy)
	}
	if t.Unusable > 0 {
		text += fmt.Sprintf("; %d not usable%s", t.Unusable, where)
	}
	return text
}

// NodeTotal returns the line below a list of nodes.
func NodeTotal(t inventory.NodeTotal) string {
	text := fmt.Sprintf("%s, %s, %s free", english.Count(t.Nodes, "node"), english.Count(t.Devices.Total, "device"), render.AtMost(t.Devices.Free, t.Devices.FreeIsUpperBound))
	if t.Problems > 0 {
		text += fmt.Sprintf("; %d with problems", t.Problems)
	}
	if t.Missing > 0 {
		text += fmt.Sprintf("; %d without expected slices", t.Missing)
	}
	return text
}

// UsageTotal returns the line below a list of usage.
func UsageTotal(t inventory.UsageTotal) string {
	text := fmt.Sprintf("%s in use by %s", english.Count(t.Used, "device"), english.Count(t.Groups, "group"))
	if t.Waiting > 0 {
		text += fmt.Sprintf(", %s waiting", english.Count(t.Waiting, "pod"))
	}
	if t.Idle > 0 {
		text += fmt.Sprintf(", %d idle", t.Idle)
	}
	if h := t.Hours; h != nil {
		text += fmt.Sprintf("; %.1f device hours, %.1f of them idle, and %.1f hours of waiting pods", h.Devices, h.Idle, h.Waiting)
	}
	return text
}

// DeviceTotal returns the line below a list of devices.
func DeviceTotal(t inventory.DeviceTotal) string {
	counts := t.Counts
	var parts []string
	for _, state := range []struct {
		name  string
		count int
	}{
		{"free", counts.Free},
		{"allocated", counts.Allocated},
		{"shared", counts.Shared},
		{"blocked", counts.Blocked},
		{"tainted", counts.Tainted},
		{"unusable", counts.Unusable},
		{"gone", counts.Gone},
		{"unpublished", t.Unpublished},
	} {
		if state.count > 0 {
			parts = append(parts, render.Bounded(state.count, counts.Bounds[state.name])+" "+state.name)
		}
	}
	text := english.Count(counts.Total, "device") + ": " + strings.Join(parts, ", ")
	if counts.Unhealthy > 0 {
		text += fmt.Sprintf("; %s unhealthy", render.Bounded(counts.Unhealthy, counts.Bounds["unhealthy"]))
	}
	return text
}

// ClaimTotal returns the line below a list of claims.
func ClaimTotal(t inventory.ClaimTotal) string {
	var parts []string
	for _, state := range []api.ClaimState{api.ClaimStatePending, api.ClaimStateAllocated, api.ClaimStateReserved, api.ClaimStateDeleting} {
		if t.ByState[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", t.ByState[state], strings.ToLower(string(state))))
		}
	}
	return fmt.Sprintf("%s: %s; %s", english.Count(t.Claims, "claim"), strings.Join(parts, ", "), english.Count(t.Devices, "device"))
}

// ClassTotal returns the line below a list of classes. It ends with where to read how
// selectors fail, if that is not empty.
func ClassTotal(t inventory.ClassTotal, where string) string {
	text := english.Count(t.Classes, "class")
	if t.Failing > 0 {
		text += fmt.Sprintf("; selectors of %d fail on some devices%s", t.Failing, where)
	}
	return text
}

// TaintTotal returns the line below a list of taints.
func TaintTotal(t inventory.TaintTotal) string {
	pods := english.Count(t.Evicted, "pod")
	if t.EvictedIsLowerBound {
		pods = render.AtLeast(t.Evicted, true) + " pods"
	}
	return fmt.Sprintf("%s on %s; %s to be evicted", english.Count(t.Taints, "taint"), english.Count(t.Devices, "device"), pods)
}

// AttributeTotal returns the line below a list of attributes. It ends with where to read
// expressions about them, if that is not empty.
func AttributeTotal(t inventory.AttributeTotal, where string) string {
	return fmt.Sprintf("%s, %s%s", english.Count(t.Attributes, "attribute"), english.Count(t.Capacities, "capacity"), where)
}
