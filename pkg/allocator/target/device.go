// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// KindDevice is the kind of what [Options.Device] names.
const KindDevice = api.KindDevice

// FindDevice looks up a device by driver/pool/device, or a part of that which is
// clear. It fails with an [*Error] if there is none, or more than one.
func FindDevice(c *cluster.Cluster, text string) (*cluster.Device, error) {
	s := &Target{}
	err := s.findDevice(c, text)
	return s.Device, err
}

// findDevice looks up the device to be explained. It may be given without its
// driver, or without its pool, too, if there is only one.
func (s *Target) findDevice(c *cluster.Cluster, text string) error {
	all := publishedDevices(c)
	forms := []func(cluster.DeviceID) string{
		cluster.DeviceID.String,
		func(id cluster.DeviceID) string { return id.Pool + "/" + id.Device },
		func(id cluster.DeviceID) string { return id.Device },
	}
	for _, form := range forms {
		var found []*cluster.Device
		for i := range all {
			if form(all[i].ID) != text {
				continue
			}
			at := slices.IndexFunc(found, func(d *cluster.Device) bool { return d.ID == all[i].ID })
			switch {
			case at < 0:
				found = append(found, &all[i])
			case s.Only != nil && !eligibility.DeviceReaches(found[at], s.Only) && eligibility.DeviceReaches(&all[i], s.Only):
				// The node may have an older generation of the pool.
				found[at] = &all[i]
			}
		}
		if len(found) > 1 && s.Only != nil {
			if there := slices.DeleteFunc(slices.Clone(found), func(d *cluster.Device) bool { return !eligibility.DeviceReaches(d, s.Only) }); len(there) > 0 {
				found = there
			}
		}
		switch len(found) {
		case 0:
		case 1:
			s.Device = found[0]
			return nil
		default:
			names := make([]string, 0, len(found))
			for _, d := range found {
				names = append(names, d.ID.String())
			}
			return &Error{
				Target:  api.Ref(KindDevice, "", text),
				Message: fmt.Sprintf("Device %s is ambiguous, there are %d of that name", text, len(names)),
				Hint:    "write one of: " + english.Sample(names, 3),
			}
		}
	}
	err := absent(c.Snapshot, api.Ref(KindDevice, "", text))
	form := forms[max(0, 2-strings.Count(text, "/"))]
	names, inPool := make([]string, 0, len(all)), []string(nil)
	for i := range all {
		id := all[i].ID
		names = append(names, form(id))
		if strings.HasPrefix(text, id.Driver+"/"+id.Pool+"/") || strings.HasPrefix(text, id.Pool+"/") {
			inPool = append(inPool, id.Device)
		}
	}
	prefix, device, candidates := "", text, names
	if len(inPool) > 0 {
		// The pool is right.
		at := strings.LastIndex(text, "/") + 1
		prefix, device, candidates = text[:at], text[at:], inPool
	}
	near := english.Typo(device, candidates)
	switch gap := c.Snapshot.Gap(snapshot.ResourceSlices); {
	case near != "":
		err.Message += english.Suggestion(prefix + near)
	case gap != nil:
		err.Hint = "it may exist all the same: " + gap.Reason
	case len(inPool) > 0:
		err.Hint = "its pool has: " + english.Sample(inPool, 3)
	case len(names) > 0:
		slices.SortFunc(names, english.CompareNames)
		err.Hint = "existing devices: " + english.Sample(slices.Compact(names), 3)
	default:
		err.Hint = "no ResourceSlice has a device"
	}
	return err
}

// publishedDevices lists all devices, starting with the newest generations.
func publishedDevices(c *cluster.Cluster) []cluster.Device {
	all := slices.Clone(c.Pools.Devices())
	for _, pool := range c.Pools.All() {
		for _, slice := range pool.Obsolete {
			for i := range slice.Spec.Devices {
				all = append(all, cluster.DeviceIn(pool, slice, i))
			}
		}
	}
	return all
}
