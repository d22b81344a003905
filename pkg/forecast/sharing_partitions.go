// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// attrProfile is the attribute in which drivers name the kind of a partition, if they declare none.
const attrProfile = "profile"

// profile is a kind of partition, see [api.SharedDevices].
type profile struct{ driver, attribute, value string }

// partitions returns the way in which devices are parts of one device (KEP-4815).
func (f *finder) partitions(ctx context.Context) (api.SharingWay, error) {
	way := api.SharingWay{Method: api.SharedPartitions}
	parts := f.matching(draws)
	divides := func(of *finder) (bool, error) {
		for _, devices := range grouped(of.matching(draws), profileOf) {
			if count, err := of.room(ctx, mostOfOne(devices), of.spec("", nil, nil)); err != nil || several(&count) {
				return err == nil, err
			}
		}
		return false, nil
	}
	switch {
	case len(parts) == 0:
		return way, f.absent(ctx, &way, "no device of the class draws on shared counters", divides)
	case !f.Gates.Enabled(cluster.GatePartitionableDevices):
		way.Reason, way.FeatureGate = gateOff(len(parts), "shared counters", cluster.GatePartitionableDevices), cluster.GatePartitionableDevices
		return way, nil
	}
	way.Devices = len(parts)
	most, best := 1, []*cluster.Device(nil)
	for _, devices := range grouped(parts, profileOf) {
		of := profileOf(devices[0])
		kind := api.SharedDevices{Driver: of.driver, Devices: len(devices), Profile: of.value, Attribute: of.attribute}
		var err error
		if kind.Claims, err = f.room(ctx, mostOfOne(devices), f.spec("", nil, nil)); err != nil {
			return way, err
		}
		if kind.Claims.AtLeast > most {
			most, best = kind.Claims.AtLeast, devices
		}
		way.Kinds = append(way.Kinds, kind)
	}
	if best == nil {
		return way, f.absent(ctx, &way, "the counters of a device are enough for one device of the class only", divides)
	}
	way.Available = true
	way.Notes = append(way.Notes, "the manifest asks for "+profileOf(best[0]).value)
	expression, ok := f.telling(ctx, best)
	if !ok {
		way.Notes = []string{"no attribute tells the profiles apart: the claims of the manifest get any device of the class"}
	}
	return way, f.decide(ctx, &way, f.newRecipe("partition", f.spec(expression, nil, nil), false))
}

// mostOfOne returns the partitions that draw on the same counters, and so are parts of one device: the
// device with the most of them.
func mostOfOne(partitions []*cluster.Device) []*cluster.Device {
	type counters struct{ driver, pool, set string }
	return grouped(partitions, func(d *cluster.Device) counters {
		return counters{d.ID.Driver, d.ID.Pool, d.ConsumesCounters[0].CounterSet}
	})[0]
}

// profileOf returns the kind of a partition: what the driver declares, the attribute profile, as the driver
// of NVIDIA has it, or the counters that it takes.
func profileOf(d *cluster.Device) profile {
	attribute, value := inventory.PartitionKind(d)
	if attribute == "" {
		if named, ok := selector.Lookup(d.Attributes, d.ID.Driver, attrProfile, d.ID.Driver); ok {
			attribute, value = d.ID.Driver+"/"+attrProfile, selector.Plain(named)
		}
	}
	return profile{d.ID.Driver, attribute, value}
}

// telling returns an expression that is true for partitions of a profile, and for no other device of the
// class. It is empty if the class has no others, and not ok if none is found.
func (f *finder) telling(ctx context.Context, partitions []*cluster.Device) (expression string, ok bool) {
	if len(partitions) == len(f.devices) {
		return "", true
	}
	first, evaluator := partitions[0], f.Gates.Selectors()
	of := profileOf(first)
	reading := selector.Attribute(resourceapi.QualifiedName(of.attribute), of.driver)
	expression, ok = selector.Condition(reading, selector.Exactly, of.driver, first.Device)
	if !ok {
		return "", false
	}
	tells := func(expression string) bool {
		sel := evaluator.Compile(expression)
		for _, d := range f.devices {
			if result := evaluator.Evaluate(ctx, sel, d.ID.Driver, d.Device); result.Err != nil || result.Matches != (draws(d) && profileOf(d) == of) {
				return false
			}
		}
		return true
	}
	if tells(expression) {
		return expression, true
	}
	guarded, ok := evaluator.Guard(evaluator.Compile(expression), []selector.Reading{reading})
	if !ok || !tells(guarded) {
		return "", false
	}
	return guarded, true
}
