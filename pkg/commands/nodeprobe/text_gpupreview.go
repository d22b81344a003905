// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

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
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writePreview writes the ResourceSlices that a driver would publish, a line for each
// device; wide ones have all attributes and capacities. notes are lines about their source.
func writePreview(w io.Writer, list []*resourceapi.ResourceSlice, machine string, notes []string, opts render.Options) error {
	p, done := simulatedPage(w, machine, opts)
	for _, note := range notes {
		p.Text(0, render.Faint, note)
	}
	for _, s := range list {
		p.Blank()
		p.Text(0, render.Strong, fmt.Sprintf("ResourceSlice %s: %s, %s", s.Name, english.Count(len(s.Spec.Devices), "device"), english.Count(len(s.Spec.SharedCounters), "counter set")))
		var names, kinds, memory []string
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			names, kinds, memory = append(names, d.Name), append(kinds, deviceKind(d)), append(memory, memoryText(d))
		}
		name, kind, size := render.Widest(48, names...), render.Widest(48, kinds...), render.Widest(20, memory...)
		for i := range s.Spec.Devices {
			p.Row(2, render.Cell{Text: names[i], Width: name}, render.Cell{Text: kinds[i], Width: kind}, render.Cell{Text: memory[i], Width: size, Right: true}, render.Cell{Text: consumedText(&s.Spec.Devices[i])})
			if opts.Wide {
				p.deviceValues(&s.Spec.Devices[i])
			}
		}
		for _, set := range s.Spec.SharedCounters {
			p.Text(2, render.Plain, set.Name+": "+strings.Join(counterValues(set.Counters), ", "))
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
		p.Text(6, render.Faint, fmt.Sprintf("%s: %s", name, nvidia.AttributeText(d.Attributes[name])))
	}
	for _, name := range slices.SortedFunc(maps.Keys(d.Capacity), cmp.Compare) {
		capacity := d.Capacity[name]
		p.Text(6, render.Faint, fmt.Sprintf("capacity %s: %s", name, inventory.QuantityText(capacity.Value.String())))
	}
	for _, c := range d.ConsumesCounters {
		p.Text(6, render.Faint, fmt.Sprintf("counters of %s: %s", c.CounterSet, strings.Join(counterValues(c.Counters), ", ")))
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

// writeComparison writes the difference between published slices and a preview: lines with
// a minus are published, lines with a plus would be.
func writeComparison(w io.Writer, c *nvidia.Comparison, opts render.Options) error {
	p, done := simulatedPage(w, c.Simulated, opts)
	if c.Unknown != "" {
		p.Text(0, render.Unsure, "Nothing can be compared: "+c.Unknown)
		return done()
	}
	if len(c.Differences) > 0 {
		p.Text(0, render.Bad, fmt.Sprintf("--- published by %s in pool %s", c.Driver, c.Pool))
		p.Text(0, render.Good, "+++ preview")
		for i := range c.Differences {
			p.difference(&c.Differences[i])
		}
		p.Blank()
	}
	if o := c.OtherSettings; o != nil {
		p.Text(0, render.Strong, otherSettingsText(o))
	}
	p.Text(0, render.Plain, fmt.Sprintf("%s published, %s in the preview, %d of them equal", english.Count(c.Published, "device"), english.Count(c.Previewed, "device"), c.Equal))
	return done()
}

// otherSettingsText names settings that explain differences, as flags.
func otherSettingsText(o *nvidia.OtherSettings) string {
	var flags []string
	if len(o.FeatureGates) > 0 {
		flags = append(flags, "--driver-feature-gates "+strings.Join(o.FeatureGates, ","))
	}
	if o.ConsumableShares != "" {
		flags = append(flags, "--consumable-shares "+o.ConsumableShares)
	}
	left := fmt.Sprintf("%d of %s left", o.Left, english.Count(o.Values, "different value"))
	if o.Left == 0 {
		left = "nothing differs"
	}
	return fmt.Sprintf("The driver may be run with other settings: with %s, %s", strings.Join(flags, " "), left)
}

func (p *page) difference(d *nvidia.Difference) {
	name := "device " + d.Device
	if d.CounterSet != "" {
		name = "counter set " + d.CounterSet
	}
	switch d.Change {
	case nvidia.OnlyPublished:
		p.Text(0, render.Bad, "-"+name)
	case nvidia.OnlyPreviewed:
		p.Text(0, render.Good, "+"+name)
	case nvidia.Changed:
		p.Row(0, render.Cell{Text: name, Mark: render.Strong})
		for _, f := range d.Fields {
			if f.Published != "" {
				p.Text(0, render.Bad, "-  "+f.Path+": "+f.Published)
			}
			if f.Previewed != "" {
				p.Text(0, render.Good, "+  "+f.Path+": "+f.Previewed)
			}
		}
	}
}

// writeChecks writes checks alone.
func writeChecks(w io.Writer, checks []node.Check, opts render.Options) error {
	p, done := simulatedPage(w, "", opts)
	p.nodeChecks(checks)
	return done()
}
