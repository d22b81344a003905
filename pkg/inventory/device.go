// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Devices lists the devices of the newest generation of all pools, in the
// order in which the allocator tries them, and then those that claims have and that are
// not published any more ([api.DeviceStateUnpublished], [api.DeviceStateGone]).
func (v *Inventory) Devices() []api.Device {
	all := v.cluster.Pools.Devices()
	devices := make([]api.Device, 0, len(all))
	for i := range all {
		devices = append(devices, describeDevice(v.eligible, v.notRead, &all[i]))
	}
	return append(devices, v.counter.unpublished()...)
}

// Device describes one device; false if no slice has it.
func (v *Inventory) Device(id cluster.DeviceID) (api.Device, bool) {
	d := v.cluster.Pools.Device(id)
	if d == nil {
		return api.Device{}, false
	}
	return describeDevice(v.eligible, v.notRead, d), true
}

func describeDevice(eligible *eligibility.Devices, notRead notRead, d *cluster.Device) api.Device {
	out := api.Device{
		TypeMeta: typeMeta("Device"),
		Driver:   d.ID.Driver, Pool: d.ID.Pool, Name: d.ID.Device, Slice: d.Slice.Name,
		Shareable:         ptr.Deref(d.AllowMultipleAllocations, false),
		BindingConditions: d.BindingConditions,
		Labels:            d.Slice.Labels,
		Taints:            taintsOf(eligible.Facts, d),
		Holders:           holdersOf(eligible.Facts, d.ID),
		Capacity:          capacityOf(eligible.Facts, notRead, d),
	}
	out.Node, out.Scope = deviceScope(d)
	out.Health, out.HealthMessage = healthOf(eligible.Facts, d)
	if len(d.Attributes) > 0 {
		out.Attributes = make(map[string]string, len(d.Attributes))
		for name, attribute := range d.Attributes {
			out.Attributes[selector.Qualified(name, d.ID.Driver)] = selector.Plain(attribute)
		}
	}
	for _, consumption := range d.ConsumesCounters {
		for name, counter := range consumption.Counters {
			if out.Counters == nil {
				out.Counters = map[string]string{}
			}
			out.Counters[consumption.CounterSet+"/"+name] = counter.Value.String()
		}
		for _, group := range consumption.CompatibilityGroups {
			if !slices.Contains(out.CompatibilityGroups, group) {
				out.CompatibilityGroups = append(out.CompatibilityGroups, group)
			}
		}
	}
	out.State, out.Reason = deviceState(eligible, d)
	out.Uncertain = notRead.uncertain(out.State)
	return out
}

// DeviceScope says in words for which nodes a device is, and the node if it is for
// one by name.
func DeviceScope(d *cluster.Device) (node, scope string) { return deviceScope(d) }

func deviceScope(d *cluster.Device) (node, scope string) {
	if ptr.Deref(d.Slice.Spec.PerDeviceNodeSelection, false) {
		return scopeOf(d.NodeName, d.AllNodes, d.NodeSelector)
	}
	return scopeOf(d.Slice.Spec.NodeName, d.Slice.Spec.AllNodes, d.Slice.Spec.NodeSelector)
}

// deviceState reports whether a request without admin access, tolerations and
// special wishes could have the device.
func deviceState(eligible *eligibility.Devices, d *cluster.Device) (api.DeviceState, string) {
	switch {
	case eligible.Facts.Usage.InUse(d.ID):
		return api.DeviceStateAllocated, ""
	case eligible.Facts.Usage.Shared(d.ID):
		return api.DeviceStateShared, ""
	}
	if why := eligible.Reason(d); why != nil {
		if why.Check == eligibility.CompatibilityGroups {
			return api.DeviceStateBlocked, why.Alone()
		}
		return api.DeviceStateUnusable, why.Alone()
	}
	if h := eligible.Facts.Partitions.Conflict(d); h != nil {
		if h.Gate != "" {
			return api.DeviceStateUnusable, "needs the feature gate " + h.Gate
		}
		return api.DeviceStateBlocked, counterConflictText(h)
	}
	if taint := TaintOf(eligible.Facts, d); taint != nil {
		return api.DeviceStateTainted, taint.String()
	}
	return api.DeviceStateFree, ""
}

// TaintOf returns the first taint of a device that keeps claims without tolerations from it, nil if there
// is none.
func TaintOf(facts *cluster.Cluster, d *cluster.Device) *resourceapi.DeviceTaint {
	for i := range d.Taints {
		if effect := d.Taints[i].Effect; facts.Gates.Enabled(cluster.GateDeviceTaints) && (effect == resourceapi.DeviceTaintEffectNoSchedule || effect == resourceapi.DeviceTaintEffectNoExecute) {
			return &d.Taints[i]
		}
	}
	return nil
}

func counterConflictText(h *cluster.CounterConflict) string {
	switch {
	case h.CounterSet != "":
		return fmt.Sprintf("counter set %s is used by devices of other compatibility groups", h.CounterSet)
	case h.Overcommitted != nil:
		return fmt.Sprintf("counter %s of %s is overcommitted", h.Overcommitted.Counter, h.Overcommitted.CounterSet)
	default:
		return fmt.Sprintf("needs %s of counter %s, %s of %s available", selector.QuantityText(h.Required), h.Short.Counter, selector.QuantityText(h.Short.Left), selector.QuantityText(h.Short.Total))
	}
}

func taintsOf(facts *cluster.Cluster, d *cluster.Device) []api.DeviceTaint {
	var taints []api.DeviceTaint
	for _, taint := range d.Taints {
		source, _ := cluster.TaintSource(facts, d, taint)
		taints = append(taints, api.DeviceTaint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect), Source: source, Since: taint.TimeAdded})
	}
	return taints
}

func holdersOf(facts *cluster.Cluster, id cluster.DeviceID) []api.Holder {
	var holders []api.Holder
	for _, h := range facts.Usage.Holders(id) {
		holder := api.Holder{
			Namespace: h.Claim.Namespace, Claim: h.Claim.Name, Request: h.Result.Request,
			AdminAccess:      ptr.Deref(h.Result.AdminAccess, false),
			ConsumedCapacity: quantities(h.Result.ConsumedCapacity),
			Status:           StatusOf(h.Claim, h.Result),
		}
		if h.Result.ShareID != nil {
			holder.ShareID = string(*h.Result.ShareID)
		}
		for _, pod := range facts.Claims.Users(h.Claim.Namespace, h.Claim.Name) {
			if !uses(facts, pod, h.Claim) {
				continue
			}
			holder.PodCount++
			if len(holder.Pods) < maxPods {
				holder.Pods = append(holder.Pods, pod.Name)
			}
		}
		holders = append(holders, holder)
	}
	return holders
}

func capacityOf(facts *cluster.Cluster, notRead notRead, d *cluster.Device) []api.Capacity {
	if len(d.Capacity) == 0 {
		return nil
	}
	consumed := facts.Usage.Consumed(d.ID)
	list := make([]api.Capacity, 0, len(d.Capacity))
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		total := d.Capacity[name].Value
		used := consumed[name]
		if facts.Usage.InUse(d.ID) {
			used = total
		}
		capacity := newCapacity(selector.Qualified(name, d.ID.Driver), total, used)
		capacity.ConsumedIsLowerBound = notRead.claims && used.Cmp(total) < 0
		list = append(list, capacity)
	}
	return list
}

// listUnpublished lists the devices that claims have and that no slice has any more. Those
// that are Ready as their drivers say were moved into a pod.
func listUnpublished(eligible *eligibility.Devices) []api.Device {
	var devices []api.Device
	known := map[cluster.DeviceID]bool{}
	for _, claim := range eligible.Facts.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			id := deviceID(result)
			if known[id] || !missing(eligible, result) {
				continue
			}
			known[id] = true
			out := api.Device{
				TypeMeta: typeMeta("Device"), Driver: id.Driver, Pool: id.Pool, Name: id.Device,
				State: api.DeviceStateGone, Reason: "no ResourceSlice has it any more",
				Holders: holdersOf(eligible.Facts, id),
			}
			if cluster.DeviceReady(claim, result) {
				out.State, out.Reason = api.DeviceStateUnpublished, out.Reason+"; its driver says in the claim's status that it is Ready"
			}
			out.Node, out.Scope = allocationScope(claim.Status.Allocation)
			devices = append(devices, out)
		}
	}
	slices.SortFunc(devices, func(a, b api.Device) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), english.CompareNames(a.Pool, b.Pool), english.CompareNames(a.Name, b.Name))
	})
	return devices
}
