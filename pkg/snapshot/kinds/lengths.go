// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The functions in this file refuse lists and texts that are longer than any
// API server stores, by the limits of k8s.io/api/resource/v1. Whatever works
// with a snapshot relies on them for its time and its memory.

// Limits before Kubernetes 1.35, which has lower ones.
const (
	maxCounterSets  = 32
	maxConsumptions = 32
)

// maxValues limits how many values one object may have. That much does not fit into the 1.5
// MiB that etcd stores of an object.
const maxValues = 100_000

// CheckSize fails for the text of an object that would take far more memory
// than an object of that size in a cluster.
func CheckSize(data []byte) error {
	if len(data) > MaxDocument {
		return TooLarge(len(data))
	}
	// Each value needs two characters.
	if len(data) <= 2*maxValues {
		return nil
	}
	if values := countValues(data); values > maxValues {
		return fmt.Errorf("expected at most %d values in an object, found %d", maxValues, values)
	}
	return nil
}

// countValues counts the values in a JSON text, and the empty lists and objects
// twice.
func countValues(data []byte) int {
	count := 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end, err := SkipString(data, i)
			if err != nil {
				return count
			}
			i = end - 1
		case ',', '[', '{':
			count++
		}
	}
	return count
}

// checkLengths fails for an object with a list or a text that is too long.
func checkLengths(object metav1.Object, apiVersion string) error {
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		if err := checkClaimLengths(&object.Spec.Devices, "spec.devices", apiVersion); err != nil {
			return err
		}
		return checkStatusLengths(&object.Status)
	case *resourceapi.ResourceClaimTemplate:
		return checkClaimLengths(&object.Spec.Spec.Devices, "spec.spec.devices", apiVersion)
	case *resourceapi.DeviceClass:
		if err := atMost(len(object.Spec.Config), resourceapi.DeviceConfigMaxSize, "spec.config"); err != nil {
			return err
		}
		for i := range object.Spec.Config {
			if err := checkOpaque(object.Spec.Config[i].Opaque, "spec.config[%d]", i); err != nil {
				return err
			}
		}
		return checkSelectors(object.Spec.Selectors, "spec")
	case *resourceapi.ResourceSlice:
		return checkSliceLengths(&object.Spec, apiVersion)
	case *resourceapi.DeviceTaintRule:
		return atMost(len(object.Status.Conditions), resourceapi.DeviceTaintRuleStatusMaxConditions, "status.conditions")
	}
	return nil
}

// atMost fails for more than so many elements of a list at a path.
func atMost(found, limit int, path string, indexes ...any) error {
	if found <= limit {
		return nil
	}
	return AtField(fmt.Sprintf(path, indexes...), fmt.Errorf("expected at most %d elements, found %d", limit, found))
}

// noLongerThan fails for a text of more than so many characters.
func noLongerThan(found, limit int, path string, indexes ...any) error {
	if found <= limit {
		return nil
	}
	return AtField(fmt.Sprintf(path, indexes...), fmt.Errorf("expected at most %d characters, found %d", limit, found))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkSelectors(selectors []resourceapi.DeviceSelector, path string) error {
	if err := atMost(len(selectors), resourceapi.DeviceSelectorsMaxSize, "%s.selectors", path); err != nil {
		return err
	}
	for i := range selectors {
		cel := selectors[i].CEL
		if cel == nil {
			// No other kind of selector exists; an API server stores none.
			return AtField(fmt.Sprintf("%s.selectors[%d]", path, i), errors.New("expected cel, found none"))
		}
		if err := noLongerThan(utf8.RuneCountInString(cel.Expression), resourceapi.CELSelectorExpressionMaxLength, "%s.selectors[%d].cel.expression", path, i); err != nil {
			return err
		}
	}
	return nil
}

func checkDerived(attributes []resourceapi.DeviceDerivedAttribute, path string) error {
	if err := atMost(len(attributes), resourceapi.DeviceDerivedAttributesMaxSize, "%s.derivedAttributes", path); err != nil {
		return err
	}
	for i := range attributes {
		if err := noLongerThan(utf8.RuneCountInString(attributes[i].Expression), resourceapi.CELSelectorExpressionMaxLength, "%s.derivedAttributes[%d].expression", path, i); err != nil {
			return err
		}
	}
	return nil
}

// checkOpaque allows for the escapes that a file may have and the API server
// did not count.
func checkOpaque(opaque *resourceapi.OpaqueDeviceConfiguration, path string, indexes ...any) error {
	if opaque == nil {
		return nil
	}
	const longestEscape = len(`\u0000`)
	return noLongerThan(len(opaque.Parameters.Raw), longestEscape*resourceapi.OpaqueParametersMaxLength, path+".opaque.parameters", indexes...)
}

func checkClaimLengths(devices *resourceapi.DeviceClaim, path, apiVersion string) error {
	if err := firstError(
		atMost(len(devices.Requests), resourceapi.DeviceRequestsMaxSize, "%s.requests", path),
		atMost(len(devices.Constraints), resourceapi.DeviceConstraintsMaxSize, "%s.constraints", path),
		atMost(len(devices.Config), resourceapi.DeviceConfigMaxSize, "%s.config", path),
	); err != nil {
		return err
	}
	for i := range devices.Requests {
		if err := checkRequestLengths(&devices.Requests[i], fmt.Sprintf("%s.requests[%d]", path, i), apiVersion); err != nil {
			return err
		}
	}
	for i := range devices.Constraints {
		if err := atMost(len(devices.Constraints[i].Requests), resourceapi.DeviceRequestsMaxSize, "%s.constraints[%d].requests", path, i); err != nil {
			return err
		}
	}
	for i := range devices.Config {
		if err := firstError(
			atMost(len(devices.Config[i].Requests), resourceapi.DeviceRequestsMaxSize, "%s.config[%d].requests", path, i),
			checkOpaque(devices.Config[i].Opaque, "%s.config[%d]", path, i),
		); err != nil {
			return err
		}
	}
	return nil
}

func checkRequestLengths(request *resourceapi.DeviceRequest, path, apiVersion string) error {
	if exactly := request.Exactly; exactly != nil {
		at := exactPath(path, apiVersion)
		if err := firstError(
			checkSelectors(exactly.Selectors, at),
			checkDerived(exactly.DerivedAttributes, at),
			atMost(len(exactly.Tolerations), resourceapi.DeviceTolerationsMaxLength, "%s.tolerations", at),
		); err != nil {
			return err
		}
	}
	if err := atMost(len(request.FirstAvailable), resourceapi.FirstAvailableDeviceRequestMaxSize, "%s.firstAvailable", path); err != nil {
		return err
	}
	for i := range request.FirstAvailable {
		alternative, at := &request.FirstAvailable[i], fmt.Sprintf("%s.firstAvailable[%d]", path, i)
		if err := firstError(
			checkSelectors(alternative.Selectors, at),
			checkDerived(alternative.DerivedAttributes, at),
			atMost(len(alternative.Tolerations), resourceapi.DeviceTolerationsMaxLength, "%s.tolerations", at),
		); err != nil {
			return err
		}
	}
	return nil
}

func checkStatusLengths(status *resourceapi.ResourceClaimStatus) error {
	if err := firstError(
		atMost(len(status.ReservedFor), resourceapi.ResourceClaimReservedForMaxSize, "status.reservedFor"),
		atMost(len(status.Devices), resourceapi.AllocationResultsMaxSize, "status.devices"),
	); err != nil {
		return err
	}
	for i := range status.Devices {
		device := &status.Devices[i]
		if err := atMost(len(device.Conditions), resourceapi.AllocatedDeviceStatusMaxConditions, "status.devices[%d].conditions", i); err != nil {
			return err
		}
		if network := device.NetworkData; network != nil {
			if err := atMost(len(network.IPs), resourceapi.NetworkDeviceDataMaxIPs, "status.devices[%d].networkData.ips", i); err != nil {
				return err
			}
		}
	}
	if status.Allocation == nil {
		return nil
	}
	allocated := &status.Allocation.Devices
	if err := firstError(
		atMost(len(allocated.Results), resourceapi.AllocationResultsMaxSize, "status.allocation.devices.results"),
		atMost(len(allocated.Config), 2*resourceapi.DeviceConfigMaxSize, "status.allocation.devices.config"),
	); err != nil {
		return err
	}
	for i := range allocated.Results {
		if err := atMost(len(allocated.Results[i].Tolerations), resourceapi.DeviceTolerationsMaxLength, "status.allocation.devices.results[%d].tolerations", i); err != nil {
			return err
		}
	}
	for i := range allocated.Config {
		if err := checkOpaque(allocated.Config[i].Opaque, "status.allocation.devices.config[%d]", i); err != nil {
			return err
		}
	}
	return nil
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

// MaxDocument is the size of the largest object, and of the largest YAML
// document that is parsed in one go. The API server stores no object of more
// than 1.5 MiB, in a form that is shorter than text.
const MaxDocument = 8 << 20

// TooLarge returns the error for a document, or an object in a List, of so many bytes.
func TooLarge(size int) error {
	const hint = "an object has at most %d MiB of text, found %.1f MiB; a List in YAML may have more as kubectl get -o yaml writes it, and any List in JSON"
	return fmt.Errorf(hint, MaxDocument>>20, float64(size)/(1<<20))
}

// exactPath returns where a request has its fields: v1beta1 knows no "exactly".
func exactPath(request, apiVersion string) string {
	if strings.HasSuffix(apiVersion, "/v1beta1") {
		return request
	}
	return request + ".exactly"
}
