// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// parse reads a spec and checks all that cdi.ReadSpec checks, which would open
// the file itself. What it refuses, runtimes do not use.
func parse(data []byte) (*specs.Spec, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty")
	}
	raw, err := cdi.ParseSpec(data)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, errors.New("the file has no spec")
	}
	if err := complete(&raw.ContainerEdits); err != nil {
		return nil, err
	}
	for i := range raw.Devices {
		if err := complete(&raw.Devices[i].ContainerEdits); err != nil {
			return nil, fmt.Errorf("device %q: %w", raw.Devices[i].Name, err)
		}
	}
	if err := specs.ValidateVersion(raw); err != nil {
		return nil, err
	}
	vendor, class := parser.ParseQualifier(raw.Kind)
	if err := errors.Join(parser.ValidateVendorName(vendor), parser.ValidateClassName(class)); err != nil {
		return nil, err
	}
	if err := annotations(raw.Annotations); err != nil {
		return nil, err
	}
	if err := (&cdi.ContainerEdits{ContainerEdits: &raw.ContainerEdits}).Validate(); err != nil {
		return nil, err
	}
	if len(raw.Devices) == 0 {
		return nil, errors.New("the spec has no devices")
	}
	names := map[string]bool{}
	for i := range raw.Devices {
		d := &raw.Devices[i]
		if names[d.Name] {
			return nil, fmt.Errorf("the spec has device %q twice", d.Name)
		}
		names[d.Name] = true
		if err := checkDevice(d); err != nil {
			return nil, fmt.Errorf("device %q: %w", d.Name, err)
		}
	}
	return raw, nil
}

func checkDevice(d *specs.Device) error {
	if err := parser.ValidateDeviceName(d.Name); err != nil {
		return err
	}
	if err := annotations(d.Annotations); err != nil {
		return err
	}
	e := &d.ContainerEdits
	if len(e.Env)+len(e.DeviceNodes)+len(e.Hooks)+len(e.Mounts)+len(e.AdditionalGIDs)+len(e.NetDevices) == 0 && e.IntelRdt == nil {
		return errors.New("it does nothing to a container")
	}
	return (&cdi.ContainerEdits{ContainerEdits: e}).Validate()
}

// complete refuses a null in a list, which the library does not expect.
func complete(e *specs.ContainerEdits) error {
	if slices.Contains(e.DeviceNodes, nil) || slices.Contains(e.Mounts, nil) || slices.Contains(e.Hooks, nil) || slices.Contains(e.NetDevices, nil) {
		return errors.New("a list of container edits has null in it")
	}
	return nil
}

func annotations(of map[string]string) error {
	return validation.ValidateAnnotations(of, field.NewPath("annotations")).ToAggregate()
}
