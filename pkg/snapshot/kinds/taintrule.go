// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"errors"

	resourceapi "k8s.io/api/resource/v1"
	convertv1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// ErrDroppedSelector is a DeviceTaintRule that cannot be kept: without the
// selectors it would taint more devices than it says.
var ErrDroppedSelector = errors.New("it selects devices by class or CEL expression, which DeviceTaintRules " +
	"cannot since Kubernetes 1.35")

// DecodeTaintRule decodes a DeviceTaintRule. All versions have the same fields
// but for the selectors that v1alpha3 had before Kubernetes 1.35.
func DecodeTaintRule(data []byte, version string) (*resourceapi.DeviceTaintRule, error) {
	if version == "v1alpha3" {
		var old struct {
			Spec struct {
				DeviceSelector struct {
					DeviceClassName *string           `json:"deviceClassName"`
					Selectors       []json.RawMessage `json:"selectors"`
				} `json:"deviceSelector"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(data, &old); err == nil &&
			(old.Spec.DeviceSelector.DeviceClassName != nil || len(old.Spec.DeviceSelector.Selectors) > 0) {
			return nil, ErrDroppedSelector
		}
	}
	if version == "v1beta2" {
		return decodeConverted(data, convertv1beta2.Convert_v1beta2_DeviceTaintRule_To_v1_DeviceTaintRule)
	}
	return DecodeAs[resourceapi.DeviceTaintRule](data)
}

func (r *rejections) taintRule(spec *resourceapi.DeviceTaintRuleSpec) {
	if s := spec.DeviceSelector; s != nil {
		if s.Driver != nil {
			r.driver(*s.Driver, "spec.deviceSelector.driver")
		}
		if s.Pool != nil {
			r.pool(*s.Pool, "spec.deviceSelector.pool")
		}
		if s.Device != nil {
			r.is(label(), *s.Device, "spec.deviceSelector.device")
		}
	}
	r.taint(&spec.Taint, "spec.taint")
}

// checkStoredRule fails for a DeviceTaintRule that no API server has ever stored.
func checkStoredRule(rule *resourceapi.DeviceTaintRule) error {
	if err := atMost(len(rule.Status.Conditions), resourceapi.DeviceTaintRuleStatusMaxConditions, "status.conditions"); err != nil {
		return err
	}
	selector := rule.Spec.DeviceSelector
	if selector == nil {
		return nil
	}
	return firstError(
		wantPointer(driverName(), selector.Driver, "spec.deviceSelector.driver"),
		wantPointer(poolName(), selector.Pool, "spec.deviceSelector.pool"),
		wantPointer(label(), selector.Device, "spec.deviceSelector.device"),
	)
}
