// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	convertv1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	convertv1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
	kjson "sigs.k8s.io/json"
)

// redactedClaims returns the tables for claims and templates.
func redactedClaims() []Redaction {
	return []Redaction{
		redacted[resourceapi.ResourceClaim](`metadata  meta ResourceClaim`),
		redacted[resourceapi.ResourceClaimTemplate](`metadata  meta ResourceClaimTemplate`),
		redacted[resourceapi.ResourceClaimTemplateSpec](`metadata  meta ResourceClaim`),
		redacted[resourceapi.DeviceRequest](`name  keep`),
		redacted[resourceapi.ExactDeviceRequest](`deviceClassName  keep`),
		redacted[resourceapi.DeviceSubRequest](`
			name             keep
			deviceClassName  keep`),
		redacted[resourceapi.CELDeviceSelector](`expression  expression`),
		redacted[resourceapi.DeviceDerivedAttribute](`expression  expression`),
		redacted[resourceapi.DeviceToleration](`value  value`),
		redacted[resourceapi.DeviceRequestAllocationResult](`
			driver   keep
			pool     name Node
			device   device
			shareID  name UID`),
		redacted[resourceapi.AllocatedDeviceStatus](`
			pool     name Node
			device   device
			shareID  name UID
			data     raw`),
		redacted[resourceapi.NetworkDeviceData](`
			interfaceName    name Interface
			hardwareAddress  name MAC
			ips              name IP`),
	}
}

// stripClaim writes what drivers read in one form.
func stripClaim(object *resourceapi.ResourceClaim) {
	for i := range object.Spec.Devices.Config {
		canonicalOpaque(object.Spec.Devices.Config[i].Opaque)
	}
	if object.Status.Allocation != nil {
		for i := range object.Status.Allocation.Devices.Config {
			canonicalOpaque(object.Status.Allocation.Devices.Config[i].Opaque)
		}
	}
	for i := range object.Status.Devices {
		if data := object.Status.Devices[i].Data; data != nil {
			canonicalRaw(data)
		}
	}
}

func canonicalOpaque(opaque *resourceapi.OpaqueDeviceConfiguration) {
	if opaque != nil {
		canonicalRaw(&opaque.Parameters)
	}
}

// canonicalRaw writes embedded JSON in one form, whatever the file had, so
// that equal objects are equal.
func canonicalRaw(raw *runtime.RawExtension) {
	var value any
	if len(raw.Raw) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &value) != nil {
		return
	}
	if canonical, err := json.Marshal(value); err == nil {
		raw.Raw = canonical
	}
}

func (s *Sharer) claim(claim *resourceapi.ResourceClaim) {
	if devices := &claim.Spec.Devices; len(devices.Requests) > 0 {
		first := &devices.Requests[0]
		class := ""
		if first.Exactly != nil {
			class = first.Exactly.DeviceClassName
		}
		devices.Requests = s.requests.of(s.hash(first.Name, class), devices.Requests, equal)
	}
	if allocation := claim.Status.Allocation; allocation != nil {
		for i := range allocation.Devices.Results {
			result := &allocation.Devices.Results[i]
			s.each(&result.Request, &result.Driver, &result.Device)
		}
	}
	for i := range claim.Status.ReservedFor {
		s.each(&claim.Status.ReservedFor[i].Resource)
	}
}

// constrained reports whether a constraint of a request uses an attribute.
func constrained(attribute resourceapi.FullyQualifiedName, request string, constraints []resourceapi.DeviceConstraint) bool {
	base, _, _ := strings.Cut(request, "/")
	for _, c := range constraints {
		about := c.MatchAttribute
		if about == nil {
			about = c.DistinctAttribute
		}
		if about != nil && *about == attribute && (len(c.Requests) == 0 || slices.Contains(c.Requests, request) || slices.Contains(c.Requests, base)) {
			return true
		}
	}
	return false
}

func decodeClaim(data []byte, version string) (claim *resourceapi.ResourceClaim, err error) {
	switch version {
	case "v1beta1":
		claim, err = decodeConverted(data, convertv1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim)
	case "v1beta2":
		claim, err = decodeConverted(data, convertv1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim)
	default:
		claim, err = DecodeAs[resourceapi.ResourceClaim](data)
	}
	return defaultedClaim(claim, err)
}

func decodeTemplate(data []byte, version string) (template *resourceapi.ResourceClaimTemplate, err error) {
	switch version {
	case "v1beta1":
		template, err = decodeConverted(data, convertv1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	case "v1beta2":
		template, err = decodeConverted(data, convertv1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	default:
		template, err = DecodeAs[resourceapi.ResourceClaimTemplate](data)
	}
	if err != nil {
		return nil, err
	}
	defaultClaimSpec(&template.Spec.Spec)
	return template, nil
}

// defaultClaimSpec sets what the API server sets when a claim is created, so that a manifest reads
// like the object it becomes. The rules are in pkg/apis/resource/v1/defaults.go and the
// +default markers of k8s.io/api/resource/v1.
func defaultClaimSpec(spec *resourceapi.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			defaultCount(&exactly.AllocationMode, &exactly.Count)
			defaultTolerations(exactly.Tolerations)
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			defaultCount(&alternative.AllocationMode, &alternative.Count)
			defaultTolerations(alternative.Tolerations)
		}
	}
}

func defaultedClaim(claim *resourceapi.ResourceClaim, err error) (*resourceapi.ResourceClaim, error) {
	if err != nil {
		return nil, err
	}
	defaultClaimSpec(&claim.Spec)
	if claim.Status.Allocation == nil {
		return claim, nil
	}
	for i := range claim.Status.Allocation.Devices.Results {
		defaultTolerations(claim.Status.Allocation.Devices.Results[i].Tolerations)
	}
	return claim, nil
}

func defaultCount(mode *resourceapi.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

func defaultTolerations(tolerations []resourceapi.DeviceToleration) {
	for i := range tolerations {
		if tolerations[i].Operator == "" {
			tolerations[i].Operator = resourceapi.DeviceTolerationOpEqual
		}
	}
}
