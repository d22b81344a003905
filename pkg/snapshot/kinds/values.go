// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The functions in this file check the values of objects by the rules of
// pkg/apis/resource/validation and pkg/apis/core/validation of Kubernetes
// v1.37.1, as far as the allocator relies on them. It does: a count below zero
// makes it panic, and so does a step of zero.

// CheckStored fails for what no API server has ever stored: numbers, lists and
// names that it refuses.
func CheckStored(object metav1.Object, apiVersion, kind string) error {
	return firstError(checkNumbers(object, apiVersion), checkLengths(object, apiVersion), checkIdentity(object, kind))
}

// checkNumbers fails for numbers that no API server has ever stored.
func checkNumbers(object metav1.Object, apiVersion string) error {
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		return checkCounts(&object.Spec.Devices, "spec.devices", apiVersion)
	case *resourceapi.ResourceClaimTemplate:
		return checkCounts(&object.Spec.Spec.Devices, "spec.spec.devices", apiVersion)
	case *resourceapi.ResourceSlice:
		if n := object.Spec.Pool.ResourceSliceCount; n < 1 {
			return AtField("spec.pool.resourceSliceCount", atLeast(1, n))
		}
		if n := object.Spec.Pool.Generation; n < 0 {
			return AtField("spec.pool.generation", atLeast(0, n))
		}
		return checkRanges(object.Spec.Devices, apiVersion)
	}
	return nil
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

func atLeast(least, found int64) error {
	return fmt.Errorf("expected at least %d, found %d", least, found)
}

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

// CheckValues fails for a manifest that the API server would reject for
// what it says about devices.
func CheckValues(object metav1.Object, apiVersion string) error {
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		return checkDevices(&object.Spec.Devices, "spec.devices", apiVersion)
	case *resourceapi.ResourceClaimTemplate:
		return checkDevices(&object.Spec.Spec.Devices, "spec.spec.devices", apiVersion)
	case *corev1.Pod:
		return checkPodClaims(&object.Spec, "spec")
	case *snapshot.Workload:
		path := "spec.template.spec"
		switch KnownWorkload(groupOf(apiVersion).Group, object.Kind) {
		case TemplateInJob:
			path = "spec.jobTemplate.spec.template.spec"
		case TemplateOnTop:
			path = "template.spec"
		case TemplateInSpec, NotWorkload:
		}
		return checkPodClaims(&object.Template.Spec, path)
	}
	return nil
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

// errNoName is something without a name that needs one.
var errNoName = errors.New("expected a name, found none")

// nameSet has the names in a list, to find those that are there twice and
// those that are referred to, but not there.
type nameSet map[string]bool

func (s nameSet) add(name, path string) error {
	switch {
	case name == "":
		return AtField(path+".name", errNoName)
	case s[name]:
		return AtField(path+".name", fmt.Errorf("%q is also the name of another before it; each needs its own", name))
	}
	s[name] = true
	return nil
}

func (s nameSet) checkReferences(requests []string, path string) error {
	for i, name := range requests {
		if !s[name] {
			return AtField(fmt.Sprintf("%s.requests[%d]", path, i), fmt.Errorf("there is no request %q", name))
		}
	}
	return nil
}

func checkPodClaims(spec *corev1.PodSpec, path string) error {
	names, listed := nameSet{}, make([]string, 0, len(spec.ResourceClaims))
	for i := range spec.ResourceClaims {
		claim := &spec.ResourceClaims[i]
		at := fmt.Sprintf("%s.resourceClaims[%d]", path, i)
		if err := names.add(claim.Name, at); err != nil {
			return err
		}
		listed = append(listed, claim.Name)
		found := ""
		switch {
		case claim.ResourceClaimName == nil && claim.ResourceClaimTemplateName == nil:
			found = "none"
		case claim.ResourceClaimName != nil && claim.ResourceClaimTemplateName != nil:
			found = "both"
		}
		if found != "" {
			return AtField(at, fmt.Errorf("expected resourceClaimName or resourceClaimTemplateName, found %s", found))
		}
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			for j, claim := range list.containers[i].Resources.Claims {
				if names[claim.Name] {
					continue
				}
				at := fmt.Sprintf("%s.%s[%d].resources.claims[%d].name", path, list.name, i, j)
				if len(listed) == 0 {
					return AtField(at, fmt.Errorf("there is no %s.resourceClaims with the name %q", path, claim.Name))
				}
				return AtField(at, fmt.Errorf("%q is none of %s.resourceClaims: %s", claim.Name, path, strings.Join(listed, ", ")))
			}
		}
	}
	return nil
}
