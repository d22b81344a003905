// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	resourceapi "k8s.io/api/resource/v1"
)

func checkCounts(devices *resourceapi.DeviceClaim, path, apiVersion string) error {
	for i := range devices.Requests {
		request := &devices.Requests[i]
		at := fmt.Sprintf("%s.requests[%d]", path, i)
		if exactly := request.Exactly; exactly != nil {
			if err := checkCount(exactly.AllocationMode, exactly.Count, exactPath(at, apiVersion)); err != nil {
				return err
			}
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			if err := checkCount(alternative.AllocationMode, alternative.Count, fmt.Sprintf("%s.firstAvailable[%d]", at, j)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkCount(mode resourceapi.DeviceAllocationMode, count int64, path string) error {
	if count < 0 || count == 0 && mode == resourceapi.DeviceAllocationModeExactCount {
		return AtField(path+".count", atLeast(1, count))
	}
	return nil
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

// exactPath returns where a request has its fields: v1beta1 knows no "exactly".
func exactPath(request, apiVersion string) string {
	if strings.HasSuffix(apiVersion, "/v1beta1") {
		return request
	}
	return request + ".exactly"
}

func checkClaimNames(devices *resourceapi.DeviceClaim, path string) error {
	for i := range devices.Requests {
		request := &devices.Requests[i]
		if err := wantForm(label(), request.Name, "%s.requests[%d].name", path, i); err != nil {
			return err
		}
		if exactly := request.Exactly; exactly != nil {
			if err := wantForm(subdomain(), exactly.DeviceClassName, "%s.requests[%d].exactly.deviceClassName", path, i); err != nil {
				return err
			}
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			if err := firstError(
				wantForm(label(), alternative.Name, "%s.requests[%d].firstAvailable[%d].name", path, i, j),
				wantForm(subdomain(), alternative.DeviceClassName, "%s.requests[%d].firstAvailable[%d].deviceClassName", path, i, j),
			); err != nil {
				return err
			}
		}
	}
	for i := range devices.Config {
		if opaque := devices.Config[i].Opaque; opaque != nil {
			if err := wantForm(driverName(), opaque.Driver, "%s.config[%d].opaque.driver", path, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkStatusNames(status *resourceapi.ResourceClaimStatus) error {
	for i := range status.ReservedFor {
		if err := Consumer(&status.ReservedFor[i], i); err != nil {
			return err
		}
	}
	if status.Allocation != nil {
		for i := range status.Allocation.Devices.Results {
			result := &status.Allocation.Devices.Results[i]
			if isLabel(result.Request) && isSubdomain(result.Driver) && isSubdomain(result.Pool) && isLabel(result.Device) {
				continue
			}
			const path = "status.allocation.devices.results[%d]."
			if err := firstError(
				wantForm(requestName(), result.Request, path+"request", i),
				wantForm(driverName(), result.Driver, path+"driver", i),
				wantForm(poolName(), result.Pool, path+"pool", i),
				wantForm(label(), result.Device, path+"device", i),
			); err != nil {
				return err
			}
		}
	}
	for i := range status.Devices {
		device := &status.Devices[i]
		if err := firstError(
			wantForm(driverName(), device.Driver, "status.devices[%d].driver", i),
			wantForm(poolName(), device.Pool, "status.devices[%d].pool", i),
			wantForm(label(), device.Device, "status.devices[%d].device", i),
		); err != nil {
			return err
		}
	}
	return nil
}

// Consumer fails for a consumer of a claim that cannot exist.
func Consumer(consumer *resourceapi.ResourceClaimConsumerReference, i int) error {
	return firstError(
		wantForm(subdomain(), consumer.APIGroup, "status.reservedFor[%d].apiGroup", i),
		wantForm(label(), consumer.Resource, "status.reservedFor[%d].resource", i),
		wantForm(anyName(), consumer.Name, "status.reservedFor[%d].name", i),
	)
}

func checkDevices(devices *resourceapi.DeviceClaim, path, apiVersion string) error {
	names := nameSet{}
	for i := range devices.Requests {
		request := &devices.Requests[i]
		at := fmt.Sprintf("%s.requests[%d]", path, i)
		if err := names.add(request.Name, at); err != nil {
			return err
		}
		if err := checkRequest(request, at, apiVersion); err != nil {
			return err
		}
	}
	for i := range devices.Requests {
		for _, alternative := range devices.Requests[i].FirstAvailable {
			names[devices.Requests[i].Name+"/"+alternative.Name] = true
		}
	}
	for i := range devices.Constraints {
		if err := names.checkReferences(devices.Constraints[i].Requests, fmt.Sprintf("%s.constraints[%d]", path, i)); err != nil {
			return err
		}
	}
	for i := range devices.Config {
		if err := names.checkReferences(devices.Config[i].Requests, fmt.Sprintf("%s.config[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func checkRequest(request *resourceapi.DeviceRequest, path, apiVersion string) error {
	exactly := request.Exactly
	switch {
	case exactly == nil && len(request.FirstAvailable) == 0:
		return AtField(path, errors.New("expected exactly or firstAvailable, found none"))
	case exactly != nil && len(request.FirstAvailable) > 0:
		return AtField(path, errors.New("expected exactly or firstAvailable, found both"))
	case exactly != nil:
		return checkWanted(exactly.DeviceClassName, exactly.AllocationMode, exactly.Count, exactPath(path, apiVersion))
	}
	names := nameSet{}
	for i := range request.FirstAvailable {
		alternative := &request.FirstAvailable[i]
		at := fmt.Sprintf("%s.firstAvailable[%d]", path, i)
		if err := names.add(alternative.Name, at); err != nil {
			return err
		}
		if err := checkWanted(alternative.DeviceClassName, alternative.AllocationMode, alternative.Count, at); err != nil {
			return err
		}
	}
	return nil
}

// checkWanted checks what requests and alternatives have in common.
func checkWanted(class string, mode resourceapi.DeviceAllocationMode, count int64, path string) error {
	switch {
	case class == "":
		return AtField(path+".deviceClassName", errNoName)
	case mode == resourceapi.DeviceAllocationModeAll && count != 0:
		return AtField(path+".count", fmt.Errorf("expected none, since allocationMode is All, found %d", count))
	case mode != resourceapi.DeviceAllocationModeAll && mode != resourceapi.DeviceAllocationModeExactCount:
		return AtField(path+".allocationMode", fmt.Errorf("expected ExactCount or All, found %q", mode))
	}
	return nil
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

func (r *rejections) claim(devices *resourceapi.DeviceClaim, path string) {
	c := &claimRules{r, devices, requestReferences(devices)}
	if r.atMost(len(devices.Requests), resourceapi.DeviceRequestsMaxSize, path+".requests") {
		c.requests(path)
	}
	if r.atMost(len(devices.Constraints), resourceapi.DeviceConstraintsMaxSize, path+".constraints") {
		for i := range devices.Constraints {
			c.constraint(&devices.Constraints[i], fmt.Sprintf("%s.constraints[%d]", path, i))
		}
	}
	if r.atMost(len(devices.Config), resourceapi.DeviceConfigMaxSize, path+".config") {
		for i := range devices.Config {
			at := fmt.Sprintf("%s.config[%d]", path, i)
			c.references(devices.Config[i].Requests, at+".requests")
			r.configuration(&devices.Config[i].DeviceConfiguration, at)
		}
	}
}

// claimRules are the rules about what requests and constraints of a claim have to do with each
// other. Known are the names of requests that constraints and configurations can use.
type claimRules struct {
	rejections *rejections
	devices    *resourceapi.DeviceClaim
	known      []string
}

func (c *claimRules) references(requests []string, path string) {
	c.rejections.atMost(len(requests), resourceapi.DeviceRequestsMaxSize, path)
	c.rejections.once(requests, path)
	for i, name := range requests {
		if !slices.Contains(c.known, name) {
			c.rejections.add(fmt.Sprintf("%s[%d]", path, i), "there is no request %q", name)
		}
	}
}

func (c *claimRules) constraint(of *resourceapi.DeviceConstraint, path string) {
	c.references(of.Requests, path+".requests")
	switch {
	// With both, the API server only looks at the first.
	case of.MatchAttribute != nil:
		c.rejections.qualified(string(*of.MatchAttribute), path+".matchAttribute", true)
	case of.DistinctAttribute != nil:
		c.rejections.qualified(string(*of.DistinctAttribute), path+".distinctAttribute", true)
	default:
		c.rejections.add(path, "expected matchAttribute or distinctAttribute, found none")
	}
}

// configuration adds opaque parameters that are none. Their length is the length of the
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

func (c *claimRules) requests(path string) {
	var names []string
	for i := range c.devices.Requests {
		request := &c.devices.Requests[i]
		at := fmt.Sprintf("%s.requests[%d]", path, i)
		c.rejections.name(request.Name, names, at)
		names = append(names, request.Name)
		switch exactly := request.Exactly; {
		case exactly == nil && len(request.FirstAvailable) == 0:
			c.rejections.add(at, "expected exactly or firstAvailable, found none")
		case exactly != nil && len(request.FirstAvailable) > 0:
			c.rejections.add(at, "expected exactly or firstAvailable, found both")
		case exactly != nil:
			c.asked(&asked{
				request.Name, exactly.DeviceClassName, exactly.AllocationMode, exactly.Count, exactly.Selectors, exactly.Tolerations, exactly.DerivedAttributes, exactly.Capacity,
			}, at+".exactly")
		default:
			c.alternatives(request, at+".firstAvailable")
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

func (c *claimRules) alternatives(request *resourceapi.DeviceRequest, path string) {
	if !c.rejections.atMost(len(request.FirstAvailable), resourceapi.FirstAvailableDeviceRequestMaxSize, path) {
		return
	}
	var names []string
	for i := range request.FirstAvailable {
		sub := &request.FirstAvailable[i]
		at := fmt.Sprintf("%s[%d]", path, i)
		c.rejections.name(sub.Name, names, at)
		names = append(names, sub.Name)
		c.asked(&asked{
			request.Name + "/" + sub.Name, sub.DeviceClassName, sub.AllocationMode, sub.Count, sub.Selectors, sub.Tolerations, sub.DerivedAttributes, sub.Capacity,
		}, at)
	}
}

func (c *claimRules) asked(a *asked, path string) {
	c.rejections.is(subdomain(), a.class, path+".deviceClassName")
	switch {
	case a.mode == resourceapi.DeviceAllocationModeAll && a.count != 0:
		c.rejections.add(path+".count", "expected none, since allocationMode is All, found %d", a.count)
	case a.mode == resourceapi.DeviceAllocationModeExactCount && a.count <= 0:
		c.rejections.add(path+".count", "expected at least 1, found %d", a.count)
	case a.mode != resourceapi.DeviceAllocationModeAll && a.mode != resourceapi.DeviceAllocationModeExactCount:
		c.rejections.add(path+".allocationMode", "expected ExactCount or All, found %q", a.mode)
	}
	c.rejections.selectors(a.selectors, path+".selectors")
	if c.rejections.atMost(len(a.tolerations), resourceapi.DeviceTolerationsMaxLength, path+".tolerations") {
		for i := range a.tolerations {
			c.rejections.toleration(&a.tolerations[i], fmt.Sprintf("%s.tolerations[%d]", path, i))
		}
	}
	if c.rejections.atMost(len(a.derived), resourceapi.DeviceDerivedAttributesMaxSize, path+".derivedAttributes") {
		c.derived(a, path+".derivedAttributes")
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

func (c *claimRules) derived(a *asked, path string) {
	var names []string
	for i, attribute := range a.derived {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.rejections.qualified(string(attribute.Name), at+".name", true)
		names = append(names, string(attribute.Name))
		if attribute.Expression == "" {
			c.rejections.add(at+".expression", "expected a CEL expression, found none")
		}
		if attribute.Name != "" && !constrained(attribute.Name, a.name, c.devices.Constraints) {
			c.rejections.add(at+".name", "no constraint for this request has the attribute %q", attribute.Name)
		}
	}
	c.rejections.once(names, path)
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

// checkStoredClaim fails for requests that no API server has ever stored.
func checkStoredClaim(devices *resourceapi.DeviceClaim, path, apiVersion string) error {
	return firstError(checkCounts(devices, path, apiVersion), checkClaimLengths(devices, path, apiVersion), checkClaimNames(devices, path))
}
