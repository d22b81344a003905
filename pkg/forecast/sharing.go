// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// finder has the devices of a class.
type finder struct {
	*cluster.Cluster
	class     *resourceapi.DeviceClass
	namespace string
	devices   []*cluster.Device
	drivers   []string
	// assumptions are facts that answers take for granted.
	assumptions []string
}

// FindSharing returns in which ways the devices of a class can be shared. Manifests are for a namespace. It fails
// if ctx is done.
func FindSharing(ctx context.Context, c *cluster.Cluster, class *resourceapi.DeviceClass, namespace string) (*api.Sharing, error) {
	f := &finder{Cluster: c, class: class, namespace: namespace}
	devices, failures, err := f.selected(ctx, class)
	if err != nil {
		return nil, err
	}
	f.devices = devices
	s := &api.Sharing{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Sharing"},
		Source:   c.Snapshot.Source, Class: class.Name, Devices: len(devices),
	}
	for _, d := range devices {
		if !slices.Contains(f.drivers, d.ID.Driver) {
			f.drivers = append(f.drivers, d.ID.Driver)
		}
		if name, _, _ := d.NodeSelection(); name == nil {
			s.SeveralNodes++
		}
		if inventory.TaintOf(c, d) != nil {
			s.Tainted++
		}
	}
	slices.Sort(f.drivers)
	s.Drivers = f.drivers
	for _, find := range []func(context.Context) (api.SharingWay, error){f.oneClaim, f.capacity, f.partitions, f.configured} {
		way, err := find(ctx)
		if err != nil {
			return nil, err
		}
		s.Ways = append(s.Ways, way)
	}
	f.assume(inventory.Assumptions(c.Snapshot))
	for i := range failures {
		f.assume([]string{fmt.Sprintf("a selector of the class fails on %s, which are left out: %s", english.Count(failures[i].Count, "device"), inventory.FailureText(&failures[i]))})
	}
	s.Assumptions = f.assumptions
	return s, nil
}

// selected returns the devices of a class, and how its selectors fail on others.
func (f *finder) selected(ctx context.Context, class *resourceapi.DeviceClass) ([]*cluster.Device, []api.SelectorFailure, error) {
	devices, failures, err := inventory.New(f.Cluster).ChosenDevices(ctx, inventory.DeviceChoice{Selectors: class.Spec.Selectors})
	if err != nil {
		return nil, nil, fmt.Errorf("find devices of class %s: %w", class.Name, err)
	}
	return devices, failures, nil
}

// assume adds assumptions that are not there yet.
func (f *finder) assume(list []string) {
	for _, text := range list {
		if !slices.Contains(f.assumptions, text) {
			f.assumptions = append(f.assumptions, text)
		}
	}
}

// noDevices is why devices of a class without devices cannot be shared.
const noDevices = "the class selects no devices now"

// oneClaim returns the way in which pods, or containers of a pod, use one claim.
func (f *finder) oneClaim(ctx context.Context) (api.SharingWay, error) {
	way := api.SharingWay{Method: api.SharedClaim, Devices: len(f.devices), MostPods: resourceapi.ResourceClaimReservedForMaxSize}
	if len(f.devices) == 0 {
		way.Reason = noDevices
		return way, nil
	}
	way.Available = true
	return way, f.decide(ctx, &way, f.newRecipe("shared-claim", f.spec("", nil, nil), true))
}

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

// configured returns the way in which the driver shares a device, as its parameters say.
func (f *finder) configured(ctx context.Context) (api.SharingWay, error) {
	way := api.SharingWay{Method: api.DriverSettings, Settings: f.settings()}
	if len(way.Settings) == 0 {
		way.Reason = "neither the class nor a claim or template for it has parameters for a driver"
		return way, nil
	}
	way.Available = true
	at := slices.IndexFunc(way.Settings, func(s api.DriverSetting) bool { return s.Objects[0].Kind != "DeviceClass" })
	switch {
	case at < 0:
		way.Notes = append(way.Notes, "the parameters of the class apply to every claim for it: no claim has to name them")
		return way, nil
	case len(f.devices) == 0:
		return way, nil
	}
	setting := &way.Settings[at]
	config := resourceapi.DeviceClaimConfiguration{Requests: []string{request}}
	config.Opaque = &resourceapi.OpaqueDeviceConfiguration{Driver: setting.Driver}
	config.Opaque.Parameters.Raw = setting.Parameters
	way.Notes = append(way.Notes, fmt.Sprintf("the manifest has the parameters of %s", setting.Objects[0].Title()))
	return way, f.decide(ctx, &way, f.newRecipe("shared-settings", f.spec("", nil, []resourceapi.DeviceClaimConfiguration{config}), true))
}

// objectsMost limits how many objects with the same setting are named.
const objectsMost = 10

// settings returns the opaque parameters for the drivers of the class that the class itself, templates,
// and claims that are made from none have. Claims and templates count with what applies to requests for
// the class.
func (f *finder) settings() []api.DriverSetting {
	var list []api.DriverSetting
	add := func(object api.ObjectRef, opaque *resourceapi.OpaqueDeviceConfiguration) {
		if opaque == nil || len(f.drivers) > 0 && !slices.Contains(f.drivers, opaque.Driver) {
			return
		}
		at := slices.IndexFunc(list, func(s api.DriverSetting) bool {
			return s.Driver == opaque.Driver && string(s.Parameters) == string(opaque.Parameters.Raw)
		})
		if at < 0 {
			at = len(list)
			list = append(list, api.DriverSetting{Driver: opaque.Driver, Parameters: opaque.Parameters.Raw})
		}
		setting := &list[at]
		if len(setting.Objects) > 0 && setting.Objects[len(setting.Objects)-1] == object {
			return
		}
		if setting.Count++; len(setting.Objects) < objectsMost {
			setting.Objects = append(setting.Objects, object)
		}
	}
	for i := range f.class.Spec.Config {
		add(api.RefTo("DeviceClass", f.class), f.class.Spec.Config[i].Opaque)
	}
	claim := func(object api.ObjectRef, spec *resourceapi.ResourceClaimSpec) {
		for i := range spec.Devices.Config {
			if config := &spec.Devices.Config[i]; f.applies(spec, config.Requests) {
				add(object, config.Opaque)
			}
		}
	}
	for _, template := range f.Snapshot.Templates {
		claim(api.RefTo(api.KindTemplate, template), &template.Spec.Spec)
	}
	for _, c := range f.Snapshot.Claims {
		if c.Annotations[resourceapi.PodResourceClaimAnnotation] == "" {
			claim(api.RefTo(api.KindClaim, c), &c.Spec)
		}
	}
	return list
}

// applies reports whether configuration for some requests, or for all if there are none, is for a request
// for the class.
func (f *finder) applies(spec *resourceapi.ResourceClaimSpec, requests []string) bool {
	for _, alternatives := range cluster.Requests(&resourceapi.ResourceClaim{Spec: *spec}) {
		for _, r := range alternatives {
			if r.Class == f.class.Name && (len(requests) == 0 || slices.Contains(requests, r.Base) || slices.Contains(requests, r.Name)) {
				return true
			}
		}
	}
	return false
}

// absent says why a way is not there that the devices of the class do not have, and which classes of the
// same drivers have it. Has reports whether devices of such a class have it.
func (f *finder) absent(ctx context.Context, way *api.SharingWay, reason string, has func(of *finder) (bool, error)) error {
	if way.Reason = reason; len(f.devices) == 0 {
		way.Reason = noDevices
		return nil
	}
	for _, class := range f.Snapshot.Classes {
		if class.Name == f.class.Name {
			continue
		}
		devices, _, err := f.selected(ctx, class)
		if err != nil {
			return err
		}
		of := *f
		of.class = class
		of.devices = slices.DeleteFunc(devices, func(d *cluster.Device) bool { return !slices.Contains(f.drivers, d.ID.Driver) })
		switch ok, err := has(&of); {
		case err != nil:
			return err
		case ok:
			way.OtherClasses = append(way.OtherClasses, class.Name)
		}
	}
	return nil
}

// gateOff says that devices have something that a feature gate of the cluster hides.
func gateOff(devices int, what, gate string) string {
	return fmt.Sprintf("%s %s %s, and feature gate %s is off", english.Count(devices, "device"), english.Plural(devices, "has", "have"), what, gate)
}

// several reports whether a device takes more than one claim.
func several(count *api.CopyCount) bool { return count != nil && count.AtLeast > 1 }

// shareable reports whether a device can be allocated several times.
func shareable(d *cluster.Device) bool { return ptr.Deref(d.AllowMultipleAllocations, false) }

// draws reports whether a device draws on shared counters.
func draws(d *cluster.Device) bool { return len(d.ConsumesCounters) > 0 }

// matching returns the devices of the class with a property.
func (f *finder) matching(has func(*cluster.Device) bool) []*cluster.Device {
	var list []*cluster.Device
	for _, d := range f.devices {
		if has(d) {
			list = append(list, d)
		}
	}
	return list
}
