// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// PoolDetails draws details of pools for which a row of a table has no room: how much of
// capacity and counters is used and by which devices, which partitions still fit, which
// devices are unhealthy. Pools without any of that are left out.
func PoolDetails(w io.Writer, pools []*api.Pool, opts Options) error {
	p := NewPage(opts)
	for _, pool := range pools {
		writePool(p, pool)
	}
	return p.writeDetails(w)
}

// writeDetails puts a blank line before and behind the details, if there are any.
func (p *Page) writeDetails(w io.Writer) error {
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
func ClaimDetails(w io.Writer, claims []*api.Claim, opts Options) error {
	p := NewPage(opts)
	for _, claim := range claims {
		writeClaimDetails(p, claim)
	}
	return p.writeDetails(w)
}

func writeClaimDetails(p *Page, c *api.Claim) {
	var reports [][]Cell
	for _, r := range c.Requests {
		for i := range r.Devices {
			for _, text := range []string{networkText(r.Devices[i].Status), dataText(r.Devices[i].Status)} {
				if text != "" {
					reports = append(reports, []Cell{{Text: r.Devices[i].Pool + "/" + r.Devices[i].Device}, {Text: text}})
				}
			}
		}
	}
	if len(reports)+len(c.Flags) == 0 {
		return
	}
	p.Text(0, Strong, "Claim "+Qualified(c.Namespace, c.Name))
	p.Rows(2, reports, 30)
	for _, flag := range c.Flags {
		p.Text(2, Plain, string(flag.Name)+": "+flag.Message)
	}
}

func writePool(p *Page, pool *api.Pool) {
	if len(pool.Capacity)+len(pool.Counters)+len(pool.Partitions)+len(pool.Unhealthy) == 0 {
		return
	}
	p.Text(0, Strong, "Pool "+pool.Driver+"/"+pool.Name)
	var lines [][]Cell
	add := func(name, consumed, total string, percent int, lower bool, by []string) {
		who := []Cell{{}, {}}
		if len(by) > 0 {
			who = []Cell{{Text: "by"}, {Text: strings.Join(collapse(by), ", ")}}
		}
		text := least(lower) + inventory.QuantityText(consumed) + "/" + inventory.QuantityText(total)
		lines = append(lines, append([]Cell{{Text: name}, {Text: Bar(percent)}, {Text: text}}, who...))
	}
	for i := range pool.Capacity {
		c := &pool.Capacity[i]
		add(lastPart(c.Name), c.Consumed, c.Total, c.ConsumedPercent, c.ConsumedIsLowerBound, nil)
	}
	for i := range pool.Counters {
		c := &pool.Counters[i]
		add(c.CounterSet+"/"+c.Name, c.Consumed, c.Total, c.ConsumedPercent, c.ConsumedIsLowerBound, c.UsedBy)
	}
	p.Rows(2, lines, 40, BarWidth+2, 20, len("by"))
	for i := range pool.Partitions {
		if partition := &pool.Partitions[i]; partition.MoreFit != nil {
			p.Text(2, Plain, fmt.Sprintf("%s more of %s would fit; %d of %s allocated",
				AtMost(*partition.MoreFit, partition.MoreFitIsUpperBound), partition.Type, partition.Allocated, english.Count(partition.Devices, "device")))
		}
	}
	for i := range pool.Unhealthy {
		p.Text(2, Bad, "unhealthy: "+pool.Unhealthy[i].Name+english.PrecededBy(": ", pool.Unhealthy[i].Message))
	}
}

// BarWidth is the number of characters between the brackets of a bar.
const BarWidth = 10

// Bar draws a used part: "[####------]". Every part above zero is visible, used or free.
func Bar(percent int) string {
	full := percent * BarWidth / 100
	switch {
	case percent <= 0:
		full = 0
	case percent >= 100:
		full = BarWidth
	default:
		full = max(full, 1)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", BarWidth-full) + "]"
}

// ClassDetails draws where the devices of classes are idle and why, and the servers of extended
// resources: the device plugins and DRA side by side. Equal nodes share a line.
func ClassDetails(w io.Writer, classes []*api.Class, resources []api.ExtendedResource, opts Options) error {
	p := NewPage(opts)
	for _, c := range classes {
		texts := IdleTexts(&api.ClassCapacity{Devices: c.DeviceCounts, Placeable: &c.Placeable, PlaceableNodes: c.PlaceableNodes})
		if len(texts) > 0 {
			p.Text(0, Strong, c.Name)
		}
		for _, text := range texts {
			p.Text(2, Plain, text)
		}
	}
	for i := range resources {
		writeExtendedResource(p, &resources[i])
	}
	return p.writeDetails(w)
}

func writeExtendedResource(p *Page, r *api.ExtendedResource) {
	title := "Extended resource " + r.Name
	switch {
	case r.Problem != "":
		title += ": DeviceClass " + r.Class + " does not serve it: " + r.Problem
	case r.Class == "":
		title += ": no DeviceClass, only device plugins"
	default:
		title += ": DeviceClass " + r.Class
	}
	p.Text(0, Strong, title)
	class := r.Class
	switch {
	case r.Problem != "":
		class = ""
	case len(r.Nodes) == 0:
		p.Text(2, Plain, "no node has any")
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
	rows := make([][]Cell, 0, len(order))
	for _, text := range order {
		rows = append(rows, []Cell{{Text: strings.Join(someNodes(nodes[text]), ", ")}, {Text: text}})
	}
	p.Rows(2, rows, 30)
}

// someNodes names a few nodes, and counts the rest.
func someNodes(names []string) []string {
	short := collapse(names)
	if len(short) <= inCell {
		return short
	}
	return append(slices.Clone(names[:inCell]), fmt.Sprintf("%d more", len(names)-inCell))
}
