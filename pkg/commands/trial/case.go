// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// requestName is the name of the request in claims for a class.
const requestName = "device"

// Case is a claim for trials. Either Class or File is set.
type Case struct {
	// Class is its DeviceClass, File its file, with the name of the object.
	Class, File string
	// Spec is the spec of the claim.
	Spec resourceapi.ResourceClaimSpec
}

// Name returns the name of the class or of the file.
func (c *Case) Name() string { return c.Class + c.File }

// drivers returns the drivers of the devices that the classes of a claim select.
func (c *Case) drivers(ctx context.Context, v *inventory.Inventory, snap *snapshot.Snapshot) ([]string, error) {
	var drivers []string
	for _, name := range classesOf(&c.Spec) {
		class := snap.Class(name)
		if class == nil {
			continue
		}
		ids, _, err := v.Choose(ctx, class.Spec.Selectors)
		if err != nil {
			return nil, fmt.Errorf("select the devices of class %s: %w", name, err)
		}
		for _, id := range ids {
			if !slices.Contains(drivers, id.Driver) {
				drivers = append(drivers, id.Driver)
			}
		}
	}
	return drivers, nil
}

func classesOf(spec *resourceapi.ResourceClaimSpec) []string {
	var classes []string
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			classes = append(classes, request.Exactly.DeviceClassName)
		}
		for j := range request.FirstAvailable {
			classes = append(classes, request.FirstAvailable[j].DeviceClassName)
		}
	}
	return classes
}

// OfClasses returns the cases for classes: a claim for one device each. No names stand for
// all classes; classes that select no device are skipped then. With a driver, the devices
// have to be of that driver.
func OfClasses(ctx context.Context, s *cluster.Cluster, names []string, driver string) (cases []Case, skipped []api.SkippedTrial, err error) {
	all := len(names) == 0
	for _, class := range s.Snapshot.Classes {
		if all {
			names = append(names, class.Name)
		}
	}
	v := inventory.New(s)
	for _, name := range names {
		request := &resourceapi.ExactDeviceRequest{DeviceClassName: name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}
		if driver != "" {
			request.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}
		}
		c := Case{Class: name, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: requestName, Exactly: request}},
		}}}
		drivers, err := c.drivers(ctx, v, s.Snapshot)
		switch {
		case err != nil:
			return nil, nil, err
		case len(drivers) == 0:
			skipped = append(skipped, api.SkippedTrial{Class: name, Reason: api.SkipNoDevices, Message: "the class selects no device of the cluster"})
		case driver != "" && !slices.Contains(drivers, driver):
			if !all {
				skipped = append(skipped, api.SkippedTrial{Class: name, Reason: api.SkipNoDevices, Message: "the class selects no device of driver " + driver})
			}
		default:
			cases = append(cases, c)
		}
	}
	return cases, skipped, nil
}

// OfManifests returns the cases for the claims and templates of files. It fails for a claim
// that must not be tried.
func OfManifests(objects *snapshot.Snapshot, file string) ([]Case, error) {
	var cases []Case
	add := func(kind, name string, spec *resourceapi.ResourceClaimSpec) error {
		for i := range spec.Devices.Requests {
			if exactly := spec.Devices.Requests[i].Exactly; exactly != nil && exactly.AdminAccess != nil && *exactly.AdminAccess {
				return fmt.Errorf("read %s %s in %s: spec.devices.requests[%d].exactly.adminAccess: true gives access to devices that others use", kind, name, file, i)
			}
		}
		cases = append(cases, Case{File: file + " (" + name + ")", Spec: *cluster.Defaulted(&resourceapi.ResourceClaim{Spec: *spec.DeepCopy()}).Spec.DeepCopy()})
		return nil
	}
	for _, claim := range objects.Claims {
		if err := add(api.KindClaim, claim.Name, &claim.Spec); err != nil {
			return nil, err
		}
	}
	for _, template := range objects.Templates {
		if err := add(api.KindTemplate, template.Name, &template.Spec.Spec); err != nil {
			return nil, err
		}
	}
	return cases, nil
}
