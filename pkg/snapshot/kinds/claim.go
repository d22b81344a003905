// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Claims, templates and classes.
func redactedClaims() []Redaction {
	return []Redaction{
		redacted[resourceapi.DeviceClass](`metadata  meta DeviceClass`),
		redacted[resourceapi.DeviceClassSpec](`extendedResourceName  keep`),
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

func (r *rejections) claim(devices *resourceapi.DeviceClaim, path string) {
	if r.atMost(len(devices.Requests), resourceapi.DeviceRequestsMaxSize, path+".requests") {
		r.requests(devices, path)
	}
	references := requestReferences(devices)
	if r.atMost(len(devices.Constraints), resourceapi.DeviceConstraintsMaxSize, path+".constraints") {
		for i := range devices.Constraints {
			r.constraint(&devices.Constraints[i], references, fmt.Sprintf("%s.constraints[%d]", path, i))
		}
	}
	if r.atMost(len(devices.Config), resourceapi.DeviceConfigMaxSize, path+".config") {
		for i := range devices.Config {
			at := fmt.Sprintf("%s.config[%d]", path, i)
			r.references(devices.Config[i].Requests, references, at+".requests")
			r.configuration(&devices.Config[i].DeviceConfiguration, at)
		}
	}
}

// requestReferences lists what constraints and configurations can name.
func requestReferences(devices *resourceapi.DeviceClaim) []string {
	var names []string
	for i := range devices.Requests {
		request := &devices.Requests[i]
		names = append(names, request.Name)
		for j := range request.FirstAvailable {
			names = append(names, request.Name+"/"+request.FirstAvailable[j].Name)
		}
	}
	return names
}

func (r *rejections) references(requests, known []string, path string) {
	r.atMost(len(requests), resourceapi.DeviceRequestsMaxSize, path)
	r.once(requests, path)
	for i, name := range requests {
		if !slices.Contains(known, name) {
			r.add(fmt.Sprintf("%s[%d]", path, i), "there is no request %q", name)
		}
	}
}

func (r *rejections) constraint(c *resourceapi.DeviceConstraint, known []string, path string) {
	r.references(c.Requests, known, path+".requests")
	switch {
	// With both, the API server only looks at the first.
	case c.MatchAttribute != nil:
		r.qualified(string(*c.MatchAttribute), path+".matchAttribute", true)
	case c.DistinctAttribute != nil:
		r.qualified(string(*c.DistinctAttribute), path+".distinctAttribute", true)
	default:
		r.add(path, "expected matchAttribute or distinctAttribute, found none")
	}
}

// configuration adds opaque parameters that are none. Their length is that of the
// text that the API server gets, which is compact JSON.
func (r *rejections) configuration(c *resourceapi.DeviceConfiguration, path string) {
	if c.Opaque == nil {
		r.add(path, "expected opaque, found none")
		return
	}
	r.driver(c.Opaque.Driver, path+".opaque.driver")
	var parameters any
	switch err := json.Unmarshal(c.Opaque.Parameters.Raw, &parameters); {
	case len(c.Opaque.Parameters.Raw) == 0 || err == nil && parameters == nil:
		r.add(path+".opaque.parameters", "expected an object, found none")
	case err != nil:
		r.add(path+".opaque.parameters", "expected an object, found no JSON")
	default:
		if _, ok := parameters.(map[string]any); !ok {
			r.add(path+".opaque.parameters", "expected an object, found something else")
		}
	}
}

func (r *rejections) requests(devices *resourceapi.DeviceClaim, path string) {
	var names []string
	for i := range devices.Requests {
		request := &devices.Requests[i]
		at := fmt.Sprintf("%s.requests[%d]", path, i)
		r.name(request.Name, names, at)
		names = append(names, request.Name)
		switch exactly := request.Exactly; {
		case exactly == nil && len(request.FirstAvailable) == 0:
			r.add(at, "expected exactly or firstAvailable, found none")
		case exactly != nil && len(request.FirstAvailable) > 0:
			r.add(at, "expected exactly or firstAvailable, found both")
		case exactly != nil:
			r.asked(&asked{
				request.Name, exactly.DeviceClassName, exactly.AllocationMode, exactly.Count, exactly.Selectors, exactly.Tolerations, exactly.DerivedAttributes, exactly.Capacity,
			}, devices, at+".exactly")
		default:
			r.alternatives(request, devices, at+".firstAvailable")
		}
	}
}

// name adds the name of a request that is none, or that another before it has.
func (r *rejections) name(name string, before []string, path string) {
	r.is(label(), name, path+".name")
	if name != "" && slices.Contains(before, name) {
		r.add(path+".name", "%q is also the name of another before it; each needs its own", name)
	}
}

func (r *rejections) alternatives(request *resourceapi.DeviceRequest, devices *resourceapi.DeviceClaim, path string) {
	if !r.atMost(len(request.FirstAvailable), resourceapi.FirstAvailableDeviceRequestMaxSize, path) {
		return
	}
	var names []string
	for i := range request.FirstAvailable {
		sub := &request.FirstAvailable[i]
		at := fmt.Sprintf("%s[%d]", path, i)
		r.name(sub.Name, names, at)
		names = append(names, sub.Name)
		r.asked(&asked{
			request.Name + "/" + sub.Name, sub.DeviceClassName, sub.AllocationMode, sub.Count, sub.Selectors, sub.Tolerations, sub.DerivedAttributes, sub.Capacity,
		}, devices, at)
	}
}

// asked has the common fields of requests and alternatives.
type asked struct {
	name        string
	class       string
	mode        resourceapi.DeviceAllocationMode
	count       int64
	selectors   []resourceapi.DeviceSelector
	tolerations []resourceapi.DeviceToleration
	derived     []resourceapi.DeviceDerivedAttribute
	capacity    *resourceapi.CapacityRequirements
}

func (r *rejections) asked(a *asked, devices *resourceapi.DeviceClaim, path string) {
	r.is(subdomain(), a.class, path+".deviceClassName")
	switch {
	case a.mode == resourceapi.DeviceAllocationModeAll && a.count != 0:
		r.add(path+".count", "expected none, since allocationMode is All, found %d", a.count)
	case a.mode == resourceapi.DeviceAllocationModeExactCount && a.count <= 0:
		r.add(path+".count", "expected at least 1, found %d", a.count)
	case a.mode != resourceapi.DeviceAllocationModeAll && a.mode != resourceapi.DeviceAllocationModeExactCount:
		r.add(path+".allocationMode", "expected ExactCount or All, found %q", a.mode)
	}
	r.selectors(a.selectors, path+".selectors")
	if r.atMost(len(a.tolerations), resourceapi.DeviceTolerationsMaxLength, path+".tolerations") {
		for i := range a.tolerations {
			r.toleration(&a.tolerations[i], fmt.Sprintf("%s.tolerations[%d]", path, i))
		}
	}
	if r.atMost(len(a.derived), resourceapi.DeviceDerivedAttributesMaxSize, path+".derivedAttributes") {
		r.derived(a, devices, path+".derivedAttributes")
	}
}

func (r *rejections) derived(a *asked, devices *resourceapi.DeviceClaim, path string) {
	var names []string
	for i, attribute := range a.derived {
		at := fmt.Sprintf("%s[%d]", path, i)
		r.qualified(string(attribute.Name), at+".name", true)
		names = append(names, string(attribute.Name))
		if attribute.Expression == "" {
			r.add(at+".expression", "expected a CEL expression, found none")
		}
		if attribute.Name != "" && !constrained(attribute.Name, a.name, devices.Constraints) {
			r.add(at+".name", "no constraint for this request has the attribute %q", attribute.Name)
		}
	}
	r.once(names, path)
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

func (r *rejections) selectors(selectors []resourceapi.DeviceSelector, path string) {
	if !r.atMost(len(selectors), resourceapi.DeviceSelectorsMaxSize, path) {
		return
	}
	for i := range selectors {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch cel := selectors[i].CEL; {
		case cel == nil:
			r.add(at, "expected cel, found none")
		case len(cel.Expression) > resourceapi.CELSelectorExpressionMaxLength:
			r.add(at+".cel.expression", "expected at most %d characters, found %d", resourceapi.CELSelectorExpressionMaxLength, len(cel.Expression))
		}
	}
}

func (r *rejections) toleration(t *resourceapi.DeviceToleration, path string) {
	if t.Key != "" {
		r.labelKey(t.Key, path+".key")
	}
	switch t.Operator {
	case resourceapi.DeviceTolerationOpExists:
		if t.Value != "" {
			r.add(path+".value", "expected none with operator Exists, found %q", t.Value)
		}
	case resourceapi.DeviceTolerationOpEqual:
		r.labelValue(t.Value, path+".value")
	default:
		r.add(path+".operator", "expected Exists or Equal, found %q", t.Operator)
	}
	if t.Effect != "" {
		r.effect(t.Effect, path+".effect")
	}
}
