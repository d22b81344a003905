// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// poolState has the slices of a pool in one of two states.
type poolState struct {
	slices  []*resourceapi.ResourceSlice
	devices map[string]*resourceapi.Device
	// count is how many slices the newest generation has, of are how many its slices say it has.
	count, of int64
	node      string
}

func newPoolState(list []*resourceapi.ResourceSlice) *poolState {
	s := &poolState{slices: list, devices: map[string]*resourceapi.Device{}}
	newest := int64(-1)
	for _, slice := range list {
		newest = max(newest, slice.Spec.Pool.Generation)
	}
	for _, slice := range list {
		if slice.Spec.Pool.Generation != newest {
			continue
		}
		s.count, s.of = s.count+1, slice.Spec.Pool.ResourceSliceCount
		if slice.Spec.NodeName != nil {
			s.node = *slice.Spec.NodeName
		}
		for i := range slice.Spec.Devices {
			d := timeless(&slice.Spec.Devices[i])
			s.devices[d.Name] = &d
		}
	}
	return s
}

func (s *poolState) incomplete() bool { return len(s.slices) > 0 && s.count < s.of }

// version returns the version that the driver of the pool publishes.
func (s *poolState) version(driver string) string {
	for _, name := range slices.Sorted(maps.Keys(s.devices)) {
		for _, attribute := range []resourceapi.QualifiedName{"driverVersion", resourceapi.QualifiedName(driver + "/driverVersion")} {
			if value, ok := s.devices[name].Attributes[attribute]; ok {
				return selector.Plain(value)
			}
		}
	}
	return ""
}

// poolFacts says what changed of a pool of a driver.
func poolFacts(driver, name string, was, is *poolState, objects []*object) []fact {
	about := fact{noun: "pool", name: name}
	add, facts := adder(about)
	node := cmp.Or(is.node, was.node)
	if from, to := was.version(driver), is.version(driver); from != "" && to != "" && from != to {
		f := about
		if node != "" {
			f.noun, f.name = "node", node
		}
		f.text = func(objects, _ string) string {
			return "driver " + driver + " " + fromTo(from, to) + " on " + objects
		}
		*facts = append(*facts, f)
	}
	gone, came := 0, 0
	for name := range was.devices {
		if is.devices[name] == nil {
			gone++
		}
	}
	for name := range is.devices {
		if was.devices[name] == nil {
			came++
		}
	}
	partly := is.incomplete() && (!was.incomplete() || is.count != was.count)
	whole := was.incomplete() && !is.incomplete() && len(is.slices) > 0
	lost := func(n int, verb string) {
		if n == 0 {
			return
		}
		left := ""
		if partly {
			left = fmt.Sprintf(" (%d of %d slices)", is.count, is.of)
			partly = false
		}
		if whole {
			left = " (all slices)"
			whole = false
		}
		f := about
		f.devices, f.text = n, func(objects, devices string) string { return objects + " " + verb + " " + devices + left }
		*facts = append(*facts, f)
	}
	switch {
	case len(is.slices) == 0:
		lost(gone, "is gone with")
	case len(was.slices) == 0:
		lost(came, "added with")
	default:
		lost(gone, "lost")
		lost(came, "got")
	}
	*facts = append(*facts, deviceFacts(about, was, is)...)
	if partly {
		add(fmt.Sprintf("has %d of %d slices", is.count, is.of))
	}
	if whole {
		add("has all slices")
	}
	for _, o := range objects {
		if len(*facts) == 0 && o.op() == api.Changed {
			addFields(add, o)
		}
	}
	if len(*facts) == 0 {
		add("has other slices")
	}
	return *facts
}

// adder returns a function that adds a fact about an object, and the list.
func adder(about fact) (add func(words string), facts *[]fact) {
	facts = &[]fact{}
	return func(words string) {
		f := about
		f.text = says(words)
		*facts = append(*facts, f)
	}, facts
}

// deviceFacts says what changed of the devices that a pool has in both states, and of how many.
func deviceFacts(about fact, was, is *poolState) []fact {
	// values has, by what changed, the devices by the change of its value.
	values := map[string]map[string]int{}
	note := func(what, change string) {
		if values[what] == nil {
			values[what] = map[string]int{}
		}
		values[what][change]++
	}
	for name, before := range was.devices {
		if after := is.devices[name]; after != nil && !equality.Semantic.DeepEqual(before, after) {
			noteDevice(before, after, note)
		}
	}
	var facts []fact
	for _, what := range slices.Sorted(maps.Keys(values)) {
		changes, sum := values[what], 0
		for _, n := range changes {
			sum += n
		}
		list := slices.Sorted(maps.Keys(changes))
		if len(list) > 1 && !strings.HasPrefix(what, "taint") {
			// Each device has a value of its own.
			list, changes = []string{"changed"}, map[string]int{"changed": sum}
		}
		for _, change := range list {
			f := about
			f.devices = changes[change]
			f.text = func(objects, devices string) string {
				if strings.Contains(change, " -> ") {
					return what + " of " + devices + " of " + objects + ": " + change
				}
				return what + " of " + devices + " of " + objects + " " + change
			}
			facts = append(facts, f)
		}
	}
	return facts
}

// noteDevice calls note for each part of a device that changed. The version of its driver is a fact
// about the pool.
func noteDevice(was, is *resourceapi.Device, note func(what, change string)) {
	before, after := plainDevice(was), plainDevice(is)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for what := range keys {
		if before[what] != after[what] && !strings.HasSuffix(what, "driverVersion") {
			note(what, fromTo(before[what], after[what]))
		}
	}
	for _, taint := range taintTexts(is) {
		if !slices.Contains(taintTexts(was), taint) {
			note("taint "+taint, "added")
		}
	}
	for _, taint := range taintTexts(was) {
		if !slices.Contains(taintTexts(is), taint) {
			note("taint "+taint, "removed")
		}
	}
}

// plainDevice returns the parts of a device besides its taints as texts.
func plainDevice(d *resourceapi.Device) map[string]string {
	parts := map[string]string{}
	for name, value := range d.Attributes {
		parts["attribute "+string(name)] = selector.Plain(value)
	}
	for name := range d.Capacity {
		quantity := d.Capacity[name].Value
		parts["capacity "+string(name)] = quantity.String()
	}
	rest := *d
	rest.Name, rest.Attributes, rest.Capacity, rest.Taints = "", nil, nil, nil
	document, _ := whatif.PlainJSON(&rest).(map[string]any)
	delete(document, "name")
	for name, value := range document {
		parts["field "+name] = short(value)
	}
	return parts
}

func taintTexts(d *resourceapi.Device) []string {
	list := make([]string, 0, len(d.Taints))
	for i := range d.Taints {
		t := &d.Taints[i]
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		list = append(list, text+":"+string(t.Effect))
	}
	return list
}
