// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	convertv1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	convertv1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// redactedSlices returns the tables for ResourceSlices, DeviceTaintRules and the status of pools.
func redactedSlices() []Redaction {
	return []Redaction{
		redacted[resourceapi.ResourceSlice](`metadata  meta ResourceSlice`),
		redacted[resourceapi.ResourceSliceSpec](`
			driver    keep
			nodeName  name Node`),
		redacted[resourceapi.ResourcePool](`name  name Node`),
		redacted[resourceapi.Device](`
			name      device
			nodeName  name Node`),
		redacted[resourceapi.DeviceTaint](`
			key    keep
			value  value`),
		redacted[resourceapi.DeviceTaintRule](`metadata  meta DeviceTaintRule`),
		redacted[resourceapi.DeviceTaintSelector](`
			driver  keep
			pool    name Node
			device  device`),
		redacted[resourcev1alpha3.ResourcePoolStatusRequest](`metadata  meta ResourcePoolStatusRequest`),
		redacted[resourcev1alpha3.ResourcePoolStatusRequestSpec](`
			driver    keep
			poolName  name Node`),
		redacted[resourcev1alpha3.PoolStatus](`
			driver           keep
			poolName         name Node
			nodeName         name Node
			validationError  text`),
	}
}

func (s *Sharer) slice(slice *resourceapi.ResourceSlice) {
	s.each(&slice.Spec.Driver)
	for i := range slice.Spec.Devices {
		device := &slice.Spec.Devices[i]
		s.each(&device.Name)
		for name, attribute := range device.Attributes {
			device.Attributes[resourceapi.QualifiedName(s.string(string(name)))] = s.attribute(attribute)
		}
		if len(device.Capacity) > 0 {
			device.Capacity = s.capacities.of(hashKeys(s, device.Capacity), device.Capacity, sameCapacities)
		}
		for j := range device.ConsumesCounters {
			s.each(&device.ConsumesCounters[j].CounterSet)
			device.ConsumesCounters[j].Counters = s.counts(device.ConsumesCounters[j].Counters)
		}
	}
	for i := range slice.Spec.SharedCounters {
		slice.Spec.SharedCounters[i].Counters = s.counts(slice.Spec.SharedCounters[i].Counters)
	}
}

func (s *Sharer) attribute(a resourceapi.DeviceAttribute) resourceapi.DeviceAttribute {
	switch {
	case a.StringValue != nil:
		a.StringValue = s.pointer(a.StringValue)
	case a.VersionValue != nil:
		a.VersionValue = s.pointer(a.VersionValue)
	case a.IntValue != nil:
		a.IntValue = s.integers.of(uint64(*a.IntValue), a.IntValue, samePointer)
	case a.BoolValue != nil && *a.BoolValue:
		a.BoolValue = s.yes
	case a.BoolValue != nil:
		a.BoolValue = s.no
	}
	return a
}

func (r *rejections) slice(spec *resourceapi.ResourceSliceSpec) {
	r.driver(spec.Driver, "spec.driver")
	r.pool(spec.Pool.Name, "spec.pool.name")
	if n := spec.Pool.ResourceSliceCount; n < 1 {
		r.add("spec.pool.resourceSliceCount", "%w", atLeast(1, n))
	}
	if n := spec.Pool.Generation; n < 0 {
		r.add("spec.pool.generation", "%w", atLeast(0, n))
	}
	perDevice := spec.PerDeviceNodeSelection
	if perDevice != nil && !*perDevice {
		r.add("spec.perDeviceNodeSelection", "expected true or none, found false")
	}
	r.nodes(spec.NodeName, spec.NodeSelector, spec.AllNodes, perDevice != nil && *perDevice, "spec",
		"nodeName, nodeSelector, allNodes and perDeviceNodeSelection")
	if s := spec.NodeSelector; s != nil && len(s.NodeSelectorTerms) != 1 {
		r.add("spec.nodeSelector.nodeSelectorTerms", "expected exactly one term, found %d", len(s.NodeSelectorTerms))
	}
	if spec.SharedCounters != nil && spec.Devices != nil {
		r.add("spec", "expected sharedCounters or devices, found both")
	}
	if r.atMost(len(spec.Devices), mostDevices(spec), "spec.devices") {
		var names []string
		for i := range spec.Devices {
			path := fmt.Sprintf("spec.devices[%d]", i)
			r.name(spec.Devices[i].Name, names, path)
			names = append(names, spec.Devices[i].Name)
			r.device(&spec.Devices[i], perDevice != nil && *perDevice, path)
		}
	}
	if r.atMost(len(spec.SharedCounters), resourceapi.ResourceSliceMaxCounterSets, "spec.sharedCounters") {
		var names []string
		for i := range spec.SharedCounters {
			set, path := &spec.SharedCounters[i], fmt.Sprintf("spec.sharedCounters[%d]", i)
			r.name(set.Name, names, path)
			names = append(names, set.Name)
			r.counters(set.Counters, resourceapi.ResourceSliceMaxCountersPerCounterSet, path+".counters")
		}
	}
}

// mostDevices returns how many devices a slice can have.
func mostDevices(spec *resourceapi.ResourceSliceSpec) int {
	for i := range spec.Devices {
		device := &spec.Devices[i]
		if len(device.Taints) > 0 || len(device.ConsumesCounters) > 0 {
			return resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
		for _, a := range device.Attributes {
			if a.BoolValues != nil || a.IntValues != nil || a.StringValues != nil || a.VersionValues != nil {
				return resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
			}
		}
	}
	return resourceapi.ResourceSliceMaxDevices
}

// nodes adds a choice of nodes that is none, or more than one.
func (r *rejections) nodes(name *string, selector *corev1.NodeSelector, all *bool, perDevice bool, path, choices string) {
	chosen := 0
	if name != nil {
		if *name == "" {
			r.add(path+".nodeName", "expected the name of a node, or no field, found nothing")
		} else {
			chosen++
			r.is(subdomain(), *name, path+".nodeName")
		}
	}
	if selector != nil {
		chosen++
	}
	if all != nil {
		if *all {
			chosen++
		} else {
			r.add(path+".allNodes", "expected true or none, found false")
		}
	}
	if perDevice {
		chosen++
	}
	switch chosen {
	case 0:
		r.add(path, "expected one of %s, found none", choices)
	case 1:
	default:
		r.add(path, "expected one of %s, found %d", choices, chosen)
	}
}

func (r *rejections) counters(counters map[string]resourceapi.Counter, limit int, path string) {
	if len(counters) == 0 {
		r.add(path, "expected counters, found none")
	}
	if !r.atMost(len(counters), limit, path) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		r.is(label(), name, fmt.Sprintf("%s[%q]", path, name))
	}
}

func (r *rejections) device(device *resourceapi.Device, perDevice bool, path string) {
	if found := len(device.Attributes) + len(device.Capacity); found > resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		r.add(path, "expected at most %d attributes and capacities, found %d", resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice, found)
	}
	values := 0
	for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
		at, attribute := fmt.Sprintf("%s.attributes[%q]", path, name), device.Attributes[name]
		r.qualified(string(name), at, false)
		values += max(1, len(attribute.BoolValues)+len(attribute.IntValues)+len(attribute.StringValues)+len(attribute.VersionValues))
		r.attribute(&attribute, at)
	}
	if values > resourceapi.ResourceSliceMaxAttributeValuesPerDevice {
		r.add(path+".attributes", "expected at most %d values of attributes, found %d", resourceapi.ResourceSliceMaxAttributeValuesPerDevice, values)
	}
	shared := device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
	for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
		at, capacity := fmt.Sprintf("%s.capacity[%q]", path, name), device.Capacity[name]
		r.qualified(string(name), at, false)
		switch {
		case capacity.RequestPolicy != nil && !shared:
			r.add(at+".requestPolicy", "expected none, since allowMultipleAllocations is not true")
		case capacity.RequestPolicy != nil:
			r.policy(&capacity, at+".requestPolicy")
		}
	}
	r.deviceLists(device, path)
	switch {
	case perDevice:
		r.nodes(device.NodeName, device.NodeSelector, device.AllNodes, false, path, "nodeName, nodeSelector and allNodes, since perDeviceNodeSelection is true")
	case device.NodeName != nil || device.NodeSelector != nil || device.AllNodes != nil:
		r.add(path, "expected no nodeName, nodeSelector or allNodes, since perDeviceNodeSelection is not true")
	}
}

func (r *rejections) deviceLists(device *resourceapi.Device, path string) {
	if r.atMost(len(device.Taints), resourceapi.DeviceTaintsMaxLength, path+".taints") {
		for i := range device.Taints {
			r.taint(&device.Taints[i], fmt.Sprintf("%s.taints[%d]", path, i))
		}
	}
	if r.atMost(len(device.ConsumesCounters), resourceapi.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, path+".consumesCounters") {
		var sets []string
		for i := range device.ConsumesCounters {
			at := fmt.Sprintf("%s.consumesCounters[%d]", path, i)
			r.is(label(), device.ConsumesCounters[i].CounterSet, at+".counterSet")
			sets = append(sets, device.ConsumesCounters[i].CounterSet)
			r.counters(device.ConsumesCounters[i].Counters, resourceapi.ResourceSliceMaxCountersPerDeviceCounterConsumption, at+".counters")
		}
		r.once(sets, path+".consumesCounters")
	}
	conditions, failures := device.BindingConditions, device.BindingFailureConditions
	r.atMost(len(conditions), resourceapi.BindingConditionsMaxSize, path+".bindingConditions")
	r.atMost(len(failures), resourceapi.BindingFailureConditionsMaxSize, path+".bindingFailureConditions")
	for i, name := range conditions {
		r.labelKey(name, fmt.Sprintf("%s.bindingConditions[%d]", path, i))
	}
	for i, name := range failures {
		at := fmt.Sprintf("%s.bindingFailureConditions[%d]", path, i)
		r.labelKey(name, at)
		if slices.Contains(conditions, name) {
			r.add(at, "%q is also in bindingConditions", name)
		}
	}
	r.once(conditions, path+".bindingConditions")
	r.once(failures, path+".bindingFailureConditions")
	if (len(conditions) == 0) != (len(failures) == 0) {
		r.add(path, "expected both or neither of bindingConditions and bindingFailureConditions")
	}
}

// semantic is a version as the API server takes it.
//
//nolint:gochecknoglobals // it is never changed
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// IsVersion reports whether a text is a semantic version, without anything before
// the numbers and without leading zeros.
func IsVersion(text string) bool { return semantic.MatchString(text) }

func (r *rejections) attribute(a *resourceapi.DeviceAttribute, path string) {
	kinds := 0
	for _, set := range []bool{
		a.BoolValue != nil, a.IntValue != nil, a.StringValue != nil, a.VersionValue != nil,
		a.BoolValues != nil, a.IntValues != nil, a.StringValues != nil, a.VersionValues != nil,
	} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		r.add(path, "expected one value, found %d", kinds)
	}
	text := func(value, at string) {
		if len(value) > resourceapi.DeviceAttributeMaxValueLength {
			r.add(at, "expected at most %d characters, found %d", resourceapi.DeviceAttributeMaxValueLength, len(value))
		}
	}
	version := func(value, at string) {
		if !IsVersion(value) {
			r.add(at, "expected a version by semver.org such as 1.2.3, found %q", value)
		}
		text(value, at)
	}
	if a.StringValue != nil {
		text(*a.StringValue, path+".string")
	}
	if a.VersionValue != nil {
		version(*a.VersionValue, path+".version")
	}
	for i, value := range a.StringValues {
		text(value, fmt.Sprintf("%s.strings[%d]", path, i))
	}
	for i, value := range a.VersionValues {
		version(value, fmt.Sprintf("%s.versions[%d]", path, i))
	}
}

// policy rejects invalid amounts that can be requested of a capacity.
func (r *rejections) policy(capacity *resourceapi.DeviceCapacity, path string) {
	p := capacity.RequestPolicy
	valid := p.ValidRange
	switch {
	case len(p.ValidValues) > 0 && valid != nil:
		r.add(path, "expected validValues or validRange, found both")
	case (len(p.ValidValues) > 0 || valid != nil) && p.Default == nil:
		r.add(path+".default", "expected a quantity, since there are valid ones, found none")
	case len(p.ValidValues) > 0:
		r.validValues(p, capacity.Value, path)
	case valid != nil && valid.Min == nil:
		r.add(path+".validRange.min", "expected a quantity, found none")
	case valid != nil:
		r.validRange(p, capacity.Value, path+".validRange")
	}
}

// maxValidValues is CapacityRequestPolicyDiscreteMaxOptions of the API server.
const maxValidValues = 10

func (r *rejections) validValues(p *resourceapi.CapacityRequestPolicy, most resource.Quantity, path string) {
	r.atMost(len(p.ValidValues), maxValidValues, path+".validValues")
	withDefault := false
	for i := range p.ValidValues {
		value, at := &p.ValidValues[i], fmt.Sprintf("%s.validValues[%d]", path, i)
		if value.Cmp(most) > 0 {
			r.add(at, "expected at most the capacity %s, found %s", most.String(), value)
		}
		if i > 0 && p.ValidValues[i-1].Cmp(*value) >= 0 {
			r.add(at, "expected values in ascending order, found %s after %s", value, p.ValidValues[i-1].String())
		}
		withDefault = withDefault || value.Cmp(*p.Default) == 0
	}
	if !withDefault {
		r.add(path+".default", "expected one of validValues, found %s", p.Default)
	}
}

func (r *rejections) validRange(p *resourceapi.CapacityRequestPolicy, most resource.Quantity, path string) {
	valid := p.ValidRange
	if valid.Min.Cmp(most) > 0 {
		r.add(path+".min", "expected at most the capacity %s, found %s", most.String(), valid.Min)
	}
	outside := p.Default.Cmp(*valid.Min) < 0
	if valid.Max != nil {
		outside = outside || p.Default.Cmp(*valid.Max) > 0
		if valid.Min.Cmp(*valid.Max) > 0 || valid.Max.Cmp(most) > 0 {
			r.add(path+".max", "expected between min %s and the capacity %s, found %s", valid.Min, most.String(), valid.Max)
		}
	}
	if outside {
		r.add(strings.TrimSuffix(path, ".validRange")+".default", "expected a quantity in validRange, found %s", p.Default)
	}
	step := valid.Step
	switch {
	case step == nil:
		return
	case step.Sign() <= 0:
		r.add(path+".step", "expected a quantity greater than zero, found %s", step)
		return
	}
	first := valid.Min.DeepCopy()
	first.Add(*step)
	if first.Cmp(most) > 0 {
		r.add(path+".step", "expected min and one step to be at most the capacity %s, found %s", most.String(), first.String())
	}
	for _, value := range []*resource.Quantity{p.Default, valid.Max} {
		if value != nil && !reachedBySteps(value, valid.Min, step) {
			r.add(path+".step", "%s is not reached from %s in steps of %s", value, valid.Min, step)
		}
	}
}

// reachedBySteps reports whether a quantity is another one and some steps, as far
// as that can be told in thousandths of 64 bits.
func reachedBySteps(value, from, step *resource.Quantity) bool {
	const most = 1 << 52
	for _, q := range []*resource.Quantity{value, from, step} {
		if q.CmpInt64(most) > 0 || q.CmpInt64(-most) < 0 {
			return true
		}
	}
	return step.MilliValue() == 0 || (value.MilliValue()-from.MilliValue())%step.MilliValue() == 0
}

func decodeSlice(data []byte, version string) (*resourceapi.ResourceSlice, error) {
	switch version {
	case "v1beta1":
		return decodeConverted(data, convertv1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice)
	case "v1beta2":
		return decodeConverted(data, convertv1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice)
	default:
		return DecodeAs[resourceapi.ResourceSlice](data)
	}
}

// checkRanges fails for ranges of request policies by which no value can be rounded
// up: the allocator divides by the step, as a number of 64 bits.
func checkRanges(devices []resourceapi.Device, apiVersion string) error {
	for i := range devices {
		for _, name := range slices.Sorted(maps.Keys(devices[i].Capacity)) {
			policy := devices[i].Capacity[name].RequestPolicy
			if policy == nil || policy.ValidRange == nil {
				continue
			}
			valid := policy.ValidRange
			field := fmt.Sprintf("%s.capacity[%q].requestPolicy.validRange", devicePath(i, apiVersion), name)
			switch step := valid.Step; {
			case valid.Min == nil:
				return AtField(field+".min", errors.New("expected a quantity, found none"))
			case step == nil:
			case step.Sign() <= 0:
				return AtField(field+".step", fmt.Errorf("expected a quantity greater than zero, found %s", step))
			case step.Value() == 0:
				return AtField(field+".step", fmt.Errorf("expected at most %d, found %s", math.MaxInt64, step))
			}
		}
	}
	return nil
}

// devicePath returns where a slice has a device: v1beta1 has its fields in "basic".
func devicePath(i int, apiVersion string) string {
	if strings.HasSuffix(apiVersion, "/v1beta1") {
		return fmt.Sprintf("spec.devices[%d].basic", i)
	}
	return fmt.Sprintf("spec.devices[%d]", i)
}

func checkSliceLengths(spec *resourceapi.ResourceSliceSpec, apiVersion string) error {
	if err := firstError(
		atMost(len(spec.Devices), resourceapi.ResourceSliceMaxDevices, "spec.devices"),
		atMost(len(spec.SharedCounters), maxCounterSets, "spec.sharedCounters"),
	); err != nil {
		return err
	}
	for i := range spec.SharedCounters {
		if err := atMost(len(spec.SharedCounters[i].Counters), resourceapi.ResourceSliceMaxCountersPerCounterSet, "spec.sharedCounters[%d].counters", i); err != nil {
			return err
		}
	}
	within := ""
	if strings.HasSuffix(apiVersion, "/v1beta1") {
		within = ".basic"
	}
	for i := range spec.Devices {
		if err := checkDeviceLengths(&spec.Devices[i], i, within); err != nil {
			return err
		}
	}
	return nil
}

func checkDeviceLengths(device *resourceapi.Device, i int, within string) error {
	const most = resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice
	if found := len(device.Attributes) + len(device.Capacity); found > most {
		return AtField(fmt.Sprintf("spec.devices[%d]%s", i, within), fmt.Errorf("expected at most %d attributes and capacities, found %d", most, found))
	}
	for _, list := range [...]struct {
		found, limit int
		name         string
	}{
		{len(device.Taints), resourceapi.DeviceTaintsMaxLength, "taints"},
		{len(device.ConsumesCounters), maxConsumptions, "consumesCounters"},
		{len(device.BindingConditions), resourceapi.BindingConditionsMaxSize, "bindingConditions"},
		{len(device.BindingFailureConditions), resourceapi.BindingFailureConditionsMaxSize, "bindingFailureConditions"},
	} {
		if list.found > list.limit {
			return atMost(list.found, list.limit, "spec.devices[%d]%s.%s", i, within, list.name)
		}
	}
	for name, attribute := range device.Attributes {
		values := max(len(attribute.StringValues), len(attribute.IntValues), len(attribute.BoolValues), len(attribute.VersionValues))
		if values > resourceapi.ResourceSliceMaxAttributeValuesPerDevice {
			return atMost(values, resourceapi.ResourceSliceMaxAttributeValuesPerDevice, "spec.devices[%d]%s.attributes[%q]", i, within, name)
		}
		if attribute.StringValue != nil && len(*attribute.StringValue) > resourceapi.DeviceAttributeMaxValueLength {
			if err := noLongerThan(utf8.RuneCountInString(*attribute.StringValue), resourceapi.DeviceAttributeMaxValueLength, "spec.devices[%d]%s.attributes[%q].string", i, within, name); err != nil {
				return err
			}
		}
	}
	for j := range device.ConsumesCounters {
		if err := atMost(len(device.ConsumesCounters[j].Counters), resourceapi.ResourceSliceMaxCountersPerDeviceCounterConsumption, "spec.devices[%d]%s.consumesCounters[%d].counters", i, within, j); err != nil {
			return err
		}
	}
	return nil
}

func checkSliceNames(spec *resourceapi.ResourceSliceSpec) error {
	if err := firstError(
		wantForm(driverName(), spec.Driver, "spec.driver"),
		wantForm(poolName(), spec.Pool.Name, "spec.pool.name"),
		wantPointer(subdomain(), spec.NodeName, "spec.nodeName"),
	); err != nil {
		return err
	}
	device := label()
	for i := range spec.Devices {
		if isLabel(spec.Devices[i].Name) && spec.Devices[i].NodeName == nil {
			continue
		}
		if err := firstError(
			wantForm(device, spec.Devices[i].Name, "spec.devices[%d].name", i),
			wantPointer(subdomain(), spec.Devices[i].NodeName, "spec.devices[%d].nodeName", i),
		); err != nil {
			return err
		}
	}
	return nil
}

// Limits before Kubernetes 1.35, which has lower ones.
const (
	maxCounterSets  = 32
	maxConsumptions = 32
)

// checkStoredSlice fails for a slice that no API server has ever stored.
func checkStoredSlice(spec *resourceapi.ResourceSliceSpec, apiVersion string) error {
	switch pool := &spec.Pool; {
	case pool.ResourceSliceCount < 1:
		return AtField("spec.pool.resourceSliceCount", atLeast(1, pool.ResourceSliceCount))
	case pool.Generation < 0:
		return AtField("spec.pool.generation", atLeast(0, pool.Generation))
	}
	return firstError(checkRanges(spec.Devices, apiVersion), checkSliceLengths(spec, apiVersion), checkSliceNames(spec))
}
