// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// chips is where the devices of a drawing of partitions begin, beside what they take; on a phone they
// are below it.
const chips = 150.0

// Partitions draws the counter sets of a pool: how much of each counter is consumed, and the
// devices that take it, a row for each size. A device is as wide as its part of the counter that
// most devices take; it is marked by its state.
func Partitions(p *api.Pool, devices []api.Device) *Drawing {
	return drawn("Partitions of pool "+p.Driver+"/"+p.Name, func(d *Drawing) { d.partitions(p, devices) })
}

// Pools draws the partitions of pools below each other, and what the colors mean.
func Pools(pools []*api.Pool, devicesOf func(*api.Pool) []api.Device) *Drawing {
	list := make([]*Drawing, 0, len(pools)+1)
	for _, p := range pools {
		title := "Pool " + p.Driver + "/" + p.Name
		list = append(list, drawn(title, func(d *Drawing) {
			d.heading(title)
			d.partitions(p, devicesOf(p))
		}))
	}
	return Stack("Partitions", append(list, PartitionLegend())...)
}

func (d *Drawing) partitions(p *api.Pool, devices []api.Device) {
	bySet := map[string][]*api.Counter{}
	for i := range p.Counters {
		c := &p.Counters[i]
		bySet[c.CounterSet] = append(bySet[c.CounterSet], c)
	}
	for _, set := range slices.Sorted(maps.Keys(bySet)) {
		if d.height > 0 {
			d.height += line / 2
		}
		counters := bySet[set]
		d.heading("Counter set " + set)
		for _, c := range counters {
			text := c.Consumed + " of " + c.Total
			if c.ConsumedIsLowerBound {
				text = "at least " + text
			}
			left := d.label(c.Name)
			whole := min(d.width-chips, 300)
			d.rect(left, d.height+3, whole, line-6, "track")
			d.rect(left, d.height+3, float64(c.ConsumedPercent)*whole/100, line-6, "fill")
			d.text(left+whole+10, d.height, "plain", "", cut(text, d.width-left-whole-10))
			d.say("%s of counter set %s: %s", c.Name, set, text)
			d.height += line
		}
		d.height += 4
		d.takers(set, counters, devices)
	}
}

// label writes a word at the left edge, and returns where there is room for the rest.
func (d *Drawing) label(text string) float64 {
	if d.width < width {
		d.text(0, d.height, "plain", "", cut(text, d.width))
		d.height += line
		return 0
	}
	d.text(0, d.height, "plain", "", cut(text, chips-8))
	return chips
}

// takers draws the devices that take counters of a set, the largest first.
func (d *Drawing) takers(set string, counters []*api.Counter, devices []api.Device) {
	taken := func(device *api.Device, counter string) float64 { return value(device.Counters[set+"/"+counter]) }
	var main *api.Counter
	most := 0
	for _, c := range counters {
		n := 0
		for i := range devices {
			if taken(&devices[i], c.Name) > 0 {
				n++
			}
		}
		if n > most {
			main, most = c, n
		}
	}
	if main == nil {
		return
	}
	rows := map[string][]*api.Device{}
	for i := range devices {
		if device := &devices[i]; taken(device, main.Name) > 0 {
			size := device.Counters[set+"/"+main.Name]
			rows[size] = append(rows[size], device)
		}
	}
	order := slices.SortedFunc(maps.Keys(rows), func(a, b string) int { return cmp.Compare(value(b), value(a)) })
	whole := max(value(main.Total), 1)
	for _, size := range order {
		left := d.label(size + " " + main.Name)
		x := left
		for _, device := range rows[size] {
			wide := min(max(value(size)/whole*(d.width-left), 44), d.width-left)
			if x+wide > d.width+1 {
				x = left
				d.height += line + 6
			}
			class, word := stateClass(device.State)
			d.rect(x+0.5, d.height+0.5, wide-4, line+2, "box "+class)
			d.text(x+4, d.height+2, "plain", "", cut(strings.TrimPrefix(device.Name, set+"-"), wide-10))
			d.say("device %s takes %s, %s", device.Name, size, word)
			x += wide
		}
		d.height += line + 6
	}
}

// stateClass returns how the state of a device is drawn, and said.
func stateClass(s api.DeviceState) (class, word string) {
	switch word = render.Words(s); s {
	case api.DeviceStateAllocated, api.DeviceStateShared:
		return "used", word
	case api.DeviceStateFree:
		return "open", word
	default:
		return "shut", word
	}
}

// value returns a quantity as a number; 0 if it is none.
func value(quantity string) float64 {
	q, err := resource.ParseQuantity(quantity)
	if err != nil {
		return 0
	}
	return q.AsApproximateFloat64()
}

// PartitionLegend explains the colors of [Partitions].
func PartitionLegend() *Drawing { return drawn("Colors of devices", (*Drawing).partitionLegend) }

func (d *Drawing) partitionLegend() {
	x := 0.0
	d.height = line
	for _, state := range []struct{ class, text string }{{"used", "in use"}, {"open", "free"}, {"shut", "blocked by those in use, or not usable"}} {
		wide := 32 + float64(len(state.text))*column + 24
		if x > 0 && x+wide > d.width+24 {
			x = 0
			d.height += line
		}
		d.rect(x+0.5, d.height-line+0.5, 24, line-4, "box "+state.class)
		d.text(x+32, d.height-line, "plain", "", state.text)
		d.say("%s", state.text)
		x += wide
	}
}
