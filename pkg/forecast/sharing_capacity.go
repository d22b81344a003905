// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// kindsMost limits how many kinds of devices are counted.
const kindsMost = 10

// capacity returns the way in which several claims get parts of the capacity of one device (KEP-5075).
func (f *finder) capacity(ctx context.Context) (api.SharingWay, error) {
	way := api.SharingWay{Method: api.SharedCapacity}
	shared := f.matching(shareable)
	switch {
	case len(shared) == 0:
		return way, f.absent(ctx, &way, "no device of the class has allowMultipleAllocations", func(of *finder) (bool, error) {
			return f.Gates.Enabled(cluster.GateConsumableCapacity) && slices.ContainsFunc(of.devices, shareable), nil
		})
	case !f.Gates.Enabled(cluster.GateConsumableCapacity):
		way.Reason, way.FeatureGate = gateOff(len(shared), "allowMultipleAllocations", cluster.GateConsumableCapacity), cluster.GateConsumableCapacity
		return way, nil
	}
	way.Devices = len(shared)
	var best *cluster.Device
	asks := map[resourceapi.QualifiedName]resource.Quantity(nil)
	for _, devices := range grouped(shared, func(d *cluster.Device) [2]string {
		// Quantities and names can be encoded.
		text, _ := json.Marshal(d.Capacity)
		return [2]string{d.ID.Driver, string(text)}
	}) {
		d := devices[0]
		least := smallest(d)
		kind := api.SharedDevices{Driver: d.ID.Driver, Devices: len(devices), Capacity: quantities(d, least)}
		var err error
		if kind.Claims, err = f.room(ctx, devices[:1], f.spec("", nil, nil)); err != nil {
			return way, err
		}
		if len(least) > 0 {
			count, err := f.room(ctx, devices[:1], f.spec("", least, nil))
			if err != nil {
				return way, err
			}
			kind.SmallestClaims = &count
		}
		if best == nil && (several(&kind.Claims) || several(kind.SmallestClaims)) {
			if best = d; !several(&kind.Claims) {
				asks = least
			}
		}
		way.Kinds = append(way.Kinds, kind)
	}
	if best == nil {
		way.Reason = "no device of the class has room for two claims"
		return way, nil
	}
	way.Available = true
	if asks != nil {
		way.Notes = append(way.Notes, "the manifest asks for these amounts")
	}
	expression := ""
	if len(shared) < len(f.devices) {
		expression = "device.allowMultipleAllocations"
	}
	return way, f.decide(ctx, &way, f.newRecipe("shared-capacity", f.spec(expression, asks, nil), false))
}

// grouped puts devices with the same key together, the largest groups first, and of these at most
// kindsMost.
func grouped[K comparable](devices []*cluster.Device, key func(*cluster.Device) K) [][]*cluster.Device {
	at := map[K]int{}
	var groups [][]*cluster.Device
	for _, d := range devices {
		k := key(d)
		if _, known := at[k]; !known {
			at[k] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[k]] = append(groups[at[k]], d)
	}
	slices.SortStableFunc(groups, func(a, b []*cluster.Device) int { return cmp.Compare(len(b), len(a)) })
	return groups[:min(len(groups), kindsMost)]
}

// quantities lists the capacity of a device that claims share, with the least that they can ask for.
func quantities(d *cluster.Device, least map[resourceapi.QualifiedName]resource.Quantity) []api.SharedQuantity {
	var list []api.SharedQuantity
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		capacity := d.Capacity[name]
		q := api.SharedQuantity{Name: string(name), Value: selector.QuantityText(capacity.Value), Default: selector.QuantityText(capacity.Value)}
		if policy := capacity.RequestPolicy; policy != nil && policy.Default != nil {
			q.Default = selector.QuantityText(*policy.Default)
		}
		if amount, less := least[name]; less {
			q.Smallest, q.AnyAmount = selector.QuantityText(amount), capacity.RequestPolicy == nil
		}
		list = append(list, q)
	}
	return list
}

// smallest returns the least that a claim can ask for of each capacity, if a claim that does not ask gets
// more. Without a policy any amount is allowed, and it returns half of the capacity.
func smallest(d *cluster.Device) map[resourceapi.QualifiedName]resource.Quantity {
	asks := map[resourceapi.QualifiedName]resource.Quantity{}
	for name, capacity := range d.Capacity {
		policy := capacity.RequestPolicy
		if policy == nil {
			if half := capacity.Value.Value() / 2; half > 0 {
				asks[name] = *resource.NewQuantity(half, capacity.Value.Format)
			}
			continue
		}
		if least := leastOf(policy); least != nil && (policy.Default == nil || least.Cmp(*policy.Default) < 0) {
			asks[name] = *least
		}
	}
	return asks
}

// leastOf returns the least amount that a policy allows and that is more than nothing, nil if it does not
// say.
func leastOf(policy *resourceapi.CapacityRequestPolicy) *resource.Quantity {
	switch {
	case len(policy.ValidValues) > 0:
		return &policy.ValidValues[0]
	case policy.ValidRange == nil || policy.ValidRange.Min == nil:
		return nil
	case policy.ValidRange.Min.Sign() > 0:
		return policy.ValidRange.Min
	default:
		return policy.ValidRange.Step
	}
}
