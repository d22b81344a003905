// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// head has the fields that distinguish a spec from any other file.
type head struct {
	CDIVersion string `json:"cdiVersion"`
	Kind       string `json:"kind"`
}

// isSpec returns why a file is not a spec. The error never quotes the file: only errors
// about known specs may.
func isSpec(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the file is empty")
	}
	content, err := yaml.YAMLToJSON(data)
	if err != nil {
		where := ""
		if line := regexp.MustCompile(`\bline ([0-9]{1,9})\b`).FindStringSubmatch(err.Error()); line != nil {
			where = ", see line " + line[1]
		}
		return fmt.Errorf("it cannot be parsed as JSON or YAML%s", where)
	}
	var spec head
	if err := json.Unmarshal(content, &spec); err != nil {
		return errors.New("it is not a CDI spec: expected an object with cdiVersion and kind")
	}
	if !regexp.MustCompile(`^v?[0-9]{1,9}(\.[0-9]{1,9}){0,2}$`).MatchString(spec.CDIVersion) {
		return errors.New("it is not a CDI spec: cdiVersion is not a version such as 0.6.0")
	}
	vendor, class := parser.ParseQualifier(spec.Kind)
	if parser.ValidateVendorName(vendor) != nil || parser.ValidateClassName(class) != nil {
		return errors.New("it is not a CDI spec: kind is not a vendor and a class, such as example.com/gpu")
	}
	return nil
}

// parse reads a spec and checks all that cdi.ReadSpec checks, which would open the file
// itself. Runtimes do not use a spec that it refuses.
func parse(data []byte) (*specs.Spec, error) {
	if err := isSpec(data); err != nil {
		return nil, err
	}
	raw, err := cdi.ParseSpec(data)
	if err != nil {
		return nil, err
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
