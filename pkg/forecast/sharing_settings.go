// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// objectsMost limits how many objects with the same setting are named.
const objectsMost = 10

// settings returns the opaque parameters for the drivers of the class that the class itself, templates,
// and claims that are made from none have. Claims and templates count with what applies to requests for
// the class.
func (f *finder) settings() []api.DriverSetting {
	var list []api.DriverSetting
	add := func(object api.ObjectRef, opaque *resourceapi.OpaqueDeviceConfiguration) {
		if opaque == nil || len(f.drivers) > 0 && !slices.Contains(f.drivers, opaque.Driver) {
			return
		}
		at := slices.IndexFunc(list, func(s api.DriverSetting) bool {
			return s.Driver == opaque.Driver && string(s.Parameters) == string(opaque.Parameters.Raw)
		})
		if at < 0 {
			at = len(list)
			list = append(list, api.DriverSetting{Driver: opaque.Driver, Parameters: opaque.Parameters.Raw})
		}
		setting := &list[at]
		if len(setting.Objects) > 0 && setting.Objects[len(setting.Objects)-1] == object {
			return
		}
		if setting.Count++; len(setting.Objects) < objectsMost {
			setting.Objects = append(setting.Objects, object)
		}
	}
	for i := range f.class.Spec.Config {
		add(api.RefTo("DeviceClass", f.class), f.class.Spec.Config[i].Opaque)
	}
	claim := func(object api.ObjectRef, spec *resourceapi.ResourceClaimSpec) {
		for i := range spec.Devices.Config {
			if config := &spec.Devices.Config[i]; f.applies(spec, config.Requests) {
				add(object, config.Opaque)
			}
		}
	}
	for _, template := range f.Snapshot.Templates {
		claim(api.RefTo(api.KindTemplate, template), &template.Spec.Spec)
	}
	for _, c := range f.Snapshot.Claims {
		if c.Annotations[resourceapi.PodResourceClaimAnnotation] == "" {
			claim(api.RefTo(api.KindClaim, c), &c.Spec)
		}
	}
	return list
}

// applies reports whether configuration for some requests, or for all if there are none, is for a request
// for the class.
func (f *finder) applies(spec *resourceapi.ResourceClaimSpec, requests []string) bool {
	for _, alternatives := range cluster.Requests(&resourceapi.ResourceClaim{Spec: *spec}) {
		for _, r := range alternatives {
			if r.Class == f.class.Name && (len(requests) == 0 || slices.Contains(requests, r.Base) || slices.Contains(requests, r.Name)) {
				return true
			}
		}
	}
	return false
}
