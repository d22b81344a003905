// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// finder has the devices of a class.
type finder struct {
	*cluster.Cluster
	class     *resourceapi.DeviceClass
	namespace string
	devices   []*cluster.Device
	drivers   []string
	// assumptions are facts that answers take for granted.
	assumptions []string
}

// FindSharing returns in which ways the devices of a class can be shared. Manifests are for a namespace. It fails
// if ctx is done.
func FindSharing(ctx context.Context, c *cluster.Cluster, class *resourceapi.DeviceClass, namespace string) (*api.Sharing, error) {
	f := &finder{Cluster: c, class: class, namespace: namespace}
	devices, failures, err := f.selected(ctx, class)
	if err != nil {
		return nil, err
	}
	f.devices = devices
	s := &api.Sharing{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Sharing"},
		Source:   c.Snapshot.Source, Class: class.Name, Devices: len(devices),
	}
	for _, d := range devices {
		if !slices.Contains(f.drivers, d.ID.Driver) {
			f.drivers = append(f.drivers, d.ID.Driver)
		}
		if name, _, _ := d.NodeSelection(); name == nil {
			s.SeveralNodes++
		}
		if inventory.TaintOf(c, d) != nil {
			s.Tainted++
		}
	}
	slices.Sort(f.drivers)
	s.Drivers = f.drivers
	for _, find := range []func(context.Context) (api.SharingWay, error){f.oneClaim, f.capacity, f.partitions, f.configured} {
		way, err := find(ctx)
		if err != nil {
			return nil, err
		}
		s.Ways = append(s.Ways, way)
	}
	f.assume(inventory.Assumptions(c.Snapshot))
	for i := range failures {
		f.assume([]string{fmt.Sprintf("a selector of the class fails on %s, which are left out: %s", english.Count(failures[i].Count, "device"), inventory.FailureText(&failures[i]))})
	}
	s.Assumptions = f.assumptions
	return s, nil
}

// selected returns the devices of a class, and how its selectors fail on others.
func (f *finder) selected(ctx context.Context, class *resourceapi.DeviceClass) ([]*cluster.Device, []api.SelectorFailure, error) {
	devices, failures, err := inventory.New(f.Cluster).ChosenDevices(ctx, inventory.DeviceChoice{Selectors: class.Spec.Selectors})
	if err != nil {
		return nil, nil, fmt.Errorf("find devices of class %s: %w", class.Name, err)
	}
	return devices, failures, nil
}

// assume adds assumptions that are not there yet.
func (f *finder) assume(list []string) {
	for _, text := range list {
		if !slices.Contains(f.assumptions, text) {
			f.assumptions = append(f.assumptions, text)
		}
	}
}

// noDevices is why devices of a class without devices cannot be shared.
const noDevices = "the class selects no devices now"

// oneClaim returns the way in which pods, or containers of a pod, use one claim.
func (f *finder) oneClaim(ctx context.Context) (api.SharingWay, error) {
	way := api.SharingWay{Method: api.SharedClaim, Devices: len(f.devices), MostPods: resourceapi.ResourceClaimReservedForMaxSize}
	if len(f.devices) == 0 {
		way.Reason = noDevices
		return way, nil
	}
	way.Available = true
	return way, f.decide(ctx, &way, f.newRecipe("shared-claim", f.spec("", nil, nil), true))
}

// configured returns the way in which the driver shares a device, as its parameters say.
func (f *finder) configured(ctx context.Context) (api.SharingWay, error) {
	way := api.SharingWay{Method: api.DriverSettings, Settings: f.settings()}
	if len(way.Settings) == 0 {
		way.Reason = "neither the class nor a claim or template for it has parameters for a driver"
		return way, nil
	}
	way.Available = true
	at := slices.IndexFunc(way.Settings, func(s api.DriverSetting) bool { return s.Objects[0].Kind != "DeviceClass" })
	switch {
	case at < 0:
		way.Notes = append(way.Notes, "the parameters of the class apply to every claim for it: no claim has to name them")
		return way, nil
	case len(f.devices) == 0:
		return way, nil
	}
	setting := &way.Settings[at]
	config := resourceapi.DeviceClaimConfiguration{Requests: []string{request}}
	config.Opaque = &resourceapi.OpaqueDeviceConfiguration{Driver: setting.Driver}
	config.Opaque.Parameters.Raw = setting.Parameters
	way.Notes = append(way.Notes, fmt.Sprintf("the manifest has the parameters of %s", setting.Objects[0].Title()))
	return way, f.decide(ctx, &way, f.newRecipe("shared-settings", f.spec("", nil, []resourceapi.DeviceClaimConfiguration{config}), true))
}

// absent says why a way is not there that the devices of the class do not have, and which classes of the
// same drivers have it. Has reports whether devices of such a class have it.
func (f *finder) absent(ctx context.Context, way *api.SharingWay, reason string, has func(of *finder) (bool, error)) error {
	if way.Reason = reason; len(f.devices) == 0 {
		way.Reason = noDevices
		return nil
	}
	for _, class := range f.Snapshot.Classes {
		if class.Name == f.class.Name {
			continue
		}
		devices, _, err := f.selected(ctx, class)
		if err != nil {
			return err
		}
		of := *f
		of.class = class
		of.devices = slices.DeleteFunc(devices, func(d *cluster.Device) bool { return !slices.Contains(f.drivers, d.ID.Driver) })
		switch ok, err := has(&of); {
		case err != nil:
			return err
		case ok:
			way.OtherClasses = append(way.OtherClasses, class.Name)
		}
	}
	return nil
}

// gateOff says that devices have something that a feature gate of the cluster hides.
func gateOff(devices int, what, gate string) string {
	return fmt.Sprintf("%s %s %s, and feature gate %s is off", english.Count(devices, "device"), english.Plural(devices, "has", "have"), what, gate)
}

// several reports whether a device takes more than one claim.
func several(count *api.CopyCount) bool { return count != nil && count.AtLeast > 1 }

// shareable reports whether a device can be allocated several times.
func shareable(d *cluster.Device) bool { return ptr.Deref(d.AllowMultipleAllocations, false) }

// draws reports whether a device draws on shared counters.
func draws(d *cluster.Device) bool { return len(d.ConsumesCounters) > 0 }

// matching returns the devices of the class with a property.
func (f *finder) matching(has func(*cluster.Device) bool) []*cluster.Device {
	var list []*cluster.Device
	for _, d := range f.devices {
		if has(d) {
			list = append(list, d)
		}
	}
	return list
}
