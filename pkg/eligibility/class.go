// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// MeantClass suggests a class for the name of a missing one, empty if there is none. The
// names are similar, and all devices of the class are of one driver: the driver in the
// name, if it has one with devices.
func (c *Catalog) MeantClass(ctx context.Context, name string, classes []*resourceapi.DeviceClass) string {
	names := make([]string, 0, len(classes))
	for _, class := range classes {
		names = append(names, class.Name)
	}
	meant := english.Typo(name, names)
	if meant == "" {
		return ""
	}
	drivers := c.DriversOf(ctx, classes[slices.Index(names, meant)])
	expected := c.DriverOfClass(name)
	if len(drivers) > 1 || len(drivers) == 1 && slices.Contains(c.Words().Drivers(), expected) && drivers[0] != expected {
		return ""
	}
	return meant
}

// DriversOf lists the drivers of a class's devices.
func (c *Catalog) DriversOf(ctx context.Context, class *resourceapi.DeviceClass) []string {
	var drivers []string
	for driver, device := range c.devices() {
		if !slices.Contains(drivers, driver) && c.InClass(ctx, class, driver, device) {
			drivers = append(drivers, driver)
		}
	}
	slices.Sort(drivers)
	return drivers
}

// DriverOfClass returns the driver whose installation creates a class of that name, empty
// if that is not known. Drivers call classes by their own name, with words before it for a
// part of their devices. The classes of NVIDIA's driver are in its Helm chart.
func (c *Catalog) DriverOfClass(name string) string {
	for _, driver := range c.Words().Drivers() {
		if name == driver || strings.HasSuffix(name, "."+driver) {
			return driver
		}
	}
	part, ofNVIDIA := strings.CutSuffix(name, ".nvidia.com")
	switch {
	case ofNVIDIA && strings.HasPrefix(part, "compute-domain"):
		return snapshot.ComputeDomainDriver
	case ofNVIDIA && (part == "mig" || strings.HasSuffix(part, ".gpu")):
		return "gpu.nvidia.com"
	case strings.Count(name, ".") > 1:
		return name
	default:
		return ""
	}
}

// ClassMissing returns the advice to an administrator about a missing class.
func (c *Catalog) ClassMissing(name string) string {
	driver := c.DriverOfClass(name)
	switch {
	case driver == "":
		return fmt.Sprintf("create DeviceClass %s: its name does not tell which driver's installation does", name)
	case driver == name && slices.Contains(c.Words().Drivers(), driver):
		return fmt.Sprintf("create DeviceClass %s, as the installation of driver %s does, with the selector device.driver == %q", name, driver, driver)
	case slices.Contains(c.Words().Drivers(), driver):
		return fmt.Sprintf("create DeviceClass %s, as the installation of driver %s does, which has devices already", name, driver)
	default:
		return fmt.Sprintf("install driver %s, or enable it in its installation: that creates DeviceClass %s", driver, name)
	}
}
