// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func partsCheck() Check {
	return Check{
		Code: "DRA1214", Title: "whole device published beside its parts", Severity: api.SeverityError, Needs: []string{snapshot.ResourceSlices},
		About:  "A driver publishes a device, and devices whose attributes name it as their parent (parentUUID, parentDevice and the like), without shared counters that both consume. The scheduler cannot know that they are the same hardware, and allocates the whole to one claim and a part to another.",
		Advice: "Let the driver publish either the whole or the parts, or shared counters: both take a feature or a version of the driver that has it. Until then, ask for devices of one kind on a node only.",
		find:   findParts,
	}
}

// parentPrefix begins the names of attributes that name a device's parent: parentUUID of
// NVIDIA's driver.
const parentPrefix = "parent"

// shortName returns the name of an attribute without its domain, in lower case.
func shortName(name resourceapi.QualifiedName) string {
	return strings.ToLower(string(name)[strings.LastIndex(string(name), "/")+1:])
}

// identity identifies a device as a parent: an attribute with its value, or the name of the
// device.
type identity struct{ driver, pool, attribute, value string }

// findParts groups the devices of one driver.
func findParts(_ context.Context, in *cluster) ([]api.Finding, error) {
	all := in.cluster.Pools.Devices()
	// There are far more devices than devices that others name.
	wholes := map[identity]*facts.Device{}
	for i := range all {
		for name, value := range all[i].Attributes {
			if of, isParent := strings.CutPrefix(shortName(name), parentPrefix); isParent {
				wholes[identity{all[i].ID.Driver, all[i].ID.Pool, of, selector.Plain(value)}] = nil
			}
		}
	}
	if len(wholes) == 0 {
		return nil, nil
	}
	for i := range all {
		d := &all[i]
		note := func(attribute, value string) {
			named := identity{d.ID.Driver, d.ID.Pool, attribute, value}
			if _, isNamed := wholes[named]; isNamed {
				wholes[named] = d
			}
		}
		for _, name := range []string{"", "device", "name", "devicename"} {
			note(name, d.ID.Device)
		}
		for name, value := range d.Attributes {
			if short := shortName(name); !strings.HasPrefix(short, parentPrefix) {
				note(short, selector.Plain(value))
			}
		}
	}
	type beside struct {
		attributes       map[string]bool
		parents, parts   []*facts.Device
		bothAreAllocated bool
	}
	byDriver := map[string]*beside{}
	for i := range all {
		part := &all[i]
		var names []resourceapi.QualifiedName
		for name := range part.Attributes {
			if strings.HasPrefix(shortName(name), parentPrefix) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			of := strings.TrimPrefix(shortName(name), parentPrefix)
			whole := wholes[identity{part.ID.Driver, part.ID.Pool, of, selector.Plain(part.Attributes[name])}]
			if whole == nil || whole.ID == part.ID || shareCounters(whole, part) {
				continue
			}
			b := byDriver[part.ID.Driver]
			if b == nil {
				b = &beside{attributes: map[string]bool{}}
				byDriver[part.ID.Driver] = b
			}
			b.attributes[string(name)] = true
			if !slices.ContainsFunc(b.parents, func(d *facts.Device) bool { return d.ID == whole.ID }) {
				b.parents = append(b.parents, whole)
			}
			b.parts = append(b.parts, part)
			b.bothAreAllocated = b.bothAreAllocated || in.cluster.Usage.InUse(whole.ID) && in.cluster.Usage.InUse(part.ID)
			break
		}
	}
	var found []api.Finding
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		b := byDriver[driver]
		attributes := english.JoinAnd(slices.Sorted(maps.Keys(b.attributes)))
		f := api.Finding{Message: fmt.Sprintf("driver %s publishes %s %s beside %s of the same hardware (%s), which name%s as parent (%s), without shared counters: ",
			driver, english.Plural(len(b.parents), "device", "devices"), deviceNames(b.parents), english.Count(len(b.parts), "part"), deviceNames(b.parts), english.Plural(len(b.parts), "s", "")+english.Plural(len(b.parents), " it", " them"), attributes)}
		if b.bothAreAllocated {
			f.Message += "claims have a whole device and a part of it at the same time"
		} else {
			f.Message += "the scheduler may allocate a whole device and a part of it at the same time"
		}
		for _, d := range slices.Concat(b.parents, b.parts) {
			if o := facts.SliceObject(d); !slices.Contains(f.Objects, o) {
				f.Objects = append(f.Objects, o)
			}
		}
		for _, d := range b.parts {
			f.Evidence = append(f.Evidence, api.Evidence{Object: facts.SliceObject(d), Path: facts.DevicePath(d, "consumesCounters"), Found: "no counter set that its parent consumes, too", Required: "a shared counter set"})
		}
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "let driver " + driver + " publish either whole devices or their parts, or shared counters for both; until then, use devices of one of the two kinds only on a node"}
		found = append(found, f)
	}
	return found, nil
}

func deviceNames(devices []*facts.Device) string {
	var names []string
	for _, d := range devices {
		names = append(names, d.ID.Pool+"/"+d.ID.Device)
	}
	return english.Sample(names, maxNames)
}

// shareCounters reports whether two devices consume counters of a set that both name.
func shareCounters(a, b *facts.Device) bool {
	return slices.ContainsFunc(a.ConsumesCounters, func(one resourceapi.DeviceCounterConsumption) bool {
		return slices.ContainsFunc(b.ConsumesCounters, func(other resourceapi.DeviceCounterConsumption) bool {
			return one.CounterSet == other.CounterSet
		})
	})
}
