// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
)

// GPUPreview writes the ResourceSlices that a driver would publish, a line for
// each device; wide ones have all attributes and capacities. notes are lines
// about where it is from.
func GPUPreview(w io.Writer, list []*resourceapi.ResourceSlice, machine string, notes []string, opts Options) error {
	p, done := simulatedPage(w, machine, opts)
	for _, note := range notes {
		p.text(0, faint, note)
	}
	for _, s := range list {
		p.blank()
		p.text(0, strong, fmt.Sprintf("ResourceSlice %s: %s, %s", s.Name, english.Count(len(s.Spec.Devices), "device"), english.Count(len(s.Spec.SharedCounters), "counter set")))
		var names, kinds, memory []string
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			names, kinds, memory = append(names, d.Name), append(kinds, deviceKind(d)), append(memory, memoryText(d))
		}
		name, kind, size := widest(48, names...), widest(48, kinds...), widest(20, memory...)
		for i := range s.Spec.Devices {
			p.row(2, cell{text: names[i], width: name}, cell{text: kinds[i], width: kind}, cell{text: memory[i], width: size, right: true}, cell{text: consumedText(&s.Spec.Devices[i])})
			if opts.Wide {
				p.deviceValues(&s.Spec.Devices[i])
			}
		}
		for _, set := range s.Spec.SharedCounters {
			p.text(2, plain, set.Name+": "+strings.Join(counterValues(set.Counters), ", "))
		}
	}
	return done()
}

func deviceKind(d *resourceapi.Device) string {
	for _, name := range []resourceapi.QualifiedName{"profile", "productName"} {
		if v := d.Attributes[name].StringValue; v != nil {
			return *v
		}
	}
	return ""
}

func memoryText(d *resourceapi.Device) string {
	memory, ok := d.Capacity["memory"]
	if !ok {
		return "memory unknown"
	}
	return inventory.QuantityText(memory.Value.String())
}

func consumedText(d *resourceapi.Device) string {
	var sets []string
	for _, c := range d.ConsumesCounters {
		sets = append(sets, "of "+c.CounterSet)
	}
	if d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
		sets = append(sets, "shared")
	}
	return strings.Join(sets, ", ")
}

func (p *page) deviceValues(d *resourceapi.Device) {
	for _, name := range slices.SortedFunc(maps.Keys(d.Attributes), cmp.Compare) {
		p.text(6, faint, fmt.Sprintf("%s: %s", name, nvidia.AttributeText(d.Attributes[name])))
	}
	for _, name := range slices.SortedFunc(maps.Keys(d.Capacity), cmp.Compare) {
		capacity := d.Capacity[name]
		p.text(6, faint, fmt.Sprintf("capacity %s: %s", name, inventory.QuantityText(capacity.Value.String())))
	}
	for _, c := range d.ConsumesCounters {
		p.text(6, faint, fmt.Sprintf("counters of %s: %s", c.CounterSet, strings.Join(counterValues(c.Counters), ", ")))
	}
}

func counterValues(counters map[string]resourceapi.Counter) []string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		value := counters[name].Value
		texts = append(texts, name+"="+inventory.QuantityText(value.String()))
	}
	return texts
}

// GPUComparison writes how what is published differs from a preview: lines with
// a minus are published, those with a plus would be.
func GPUComparison(w io.Writer, c *nvidia.Comparison, opts Options) error {
	p, done := simulatedPage(w, c.Simulated, opts)
	if c.Unknown != "" {
		p.text(0, unsure, "Nothing can be compared: "+c.Unknown)
		return done()
	}
	if len(c.Differences) > 0 {
		p.text(0, bad, fmt.Sprintf("--- published by %s in pool %s", c.Driver, c.Pool))
		p.text(0, good, "+++ preview")
		for i := range c.Differences {
			p.difference(&c.Differences[i])
		}
		p.blank()
	}
	p.text(0, plain, fmt.Sprintf("%s published, %s in the preview, %d of them equal", english.Count(c.Published, "device"), english.Count(c.Previewed, "device"), c.Equal))
	return done()
}

func (p *page) difference(d *nvidia.Difference) {
	name := "device " + d.Device
	if d.CounterSet != "" {
		name = "counter set " + d.CounterSet
	}
	switch d.Change {
	case nvidia.OnlyPublished:
		p.text(0, bad, "-"+name)
	case nvidia.OnlyPreviewed:
		p.text(0, good, "+"+name)
	case nvidia.Changed:
		p.row(0, cell{text: name, mark: strong})
		for _, f := range d.Fields {
			if f.Published != "" {
				p.text(0, bad, "-  "+f.Path+": "+f.Published)
			}
			if f.Previewed != "" {
				p.text(0, good, "+  "+f.Path+": "+f.Previewed)
			}
		}
	}
}

// NodeChecks writes checks alone.
func NodeChecks(w io.Writer, checks []node.Check, opts Options) error {
	p, done := simulatedPage(w, "", opts)
	p.nodeChecks(checks)
	return done()
}
