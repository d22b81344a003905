// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	convertv1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	convertv1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

func redactedClasses() []Redaction {
	return []Redaction{
		redacted[resourceapi.DeviceClass](`metadata  meta DeviceClass`),
		redacted[resourceapi.DeviceClassSpec](`extendedResourceName  keep`),
	}
}

func decodeClass(data []byte, version string) (*resourceapi.DeviceClass, error) {
	switch version {
	case "v1beta1":
		return decodeConverted(data, convertv1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass)
	case "v1beta2":
		return decodeConverted(data, convertv1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass)
	default:
		return DecodeAs[resourceapi.DeviceClass](data)
	}
}

func (r *rejections) class(spec *resourceapi.DeviceClassSpec) {
	r.selectors(spec.Selectors, "spec.selectors")
	if r.atMost(len(spec.Config), resourceapi.DeviceConfigMaxSize, "spec.config") {
		for i := range spec.Config {
			r.configuration(&spec.Config[i].DeviceConfiguration, fmt.Sprintf("spec.config[%d]", i))
		}
	}
	if name := spec.ExtendedResourceName; name != nil && !isExtendedResource(*name) {
		r.add("spec.extendedResourceName", "expected the name of an extended resource such as example.com/gpu, found %q", *name)
	}
}

// checkStoredClass fails for a class that no API server has ever stored.
func checkStoredClass(spec *resourceapi.DeviceClassSpec) error {
	if err := atMost(len(spec.Config), resourceapi.DeviceConfigMaxSize, "spec.config"); err != nil {
		return err
	}
	for i := range spec.Config {
		opaque := spec.Config[i].Opaque
		if err := checkOpaque(opaque, "spec.config[%d]", i); err != nil {
			return err
		}
		if opaque == nil {
			continue
		}
		if err := wantForm(driverName(), opaque.Driver, "spec.config[%d].opaque.driver", i); err != nil {
			return err
		}
	}
	return checkSelectors(spec.Selectors, "spec")
}
