// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

const (
	// uuid is the attribute by which drivers identify the hardware.
	uuid = "uuid"
	// pciAddress is the one of the DRA library (deviceattribute of
	// k8s.io/dynamic-resource-allocation).
	pciAddress = "resource.kubernetes.io/pciBusID"
)

// hardware identifies a piece of hardware that several devices may stand for.
type hardware struct {
	attribute, value string
	// node is the node of the devices, empty for an identity that is unique everywhere.
	node string
}

func findSameHardware(_ context.Context, in *cluster) ([]api.Finding, error) {
	devices := map[hardware][]*facts.Device{}
	all := in.cluster.Pools.Devices()
	for i := range all {
		d := &all[i]
		if len(d.ConsumesCounters) > 0 {
			// Partitions are parts of one piece, as their counters show.
			continue
		}
		for name, attribute := range d.Attributes {
			value := ptr.Deref(attribute.StringValue, "")
			short := string(name)[strings.LastIndex(string(name), "/")+1:]
			switch {
			case value == "":
			case strings.EqualFold(short, uuid):
				key := hardware{attribute: uuid, value: value}
				devices[key] = append(devices[key], d)
			case name == pciAddress && ptr.Deref(d.Slice.Spec.NodeName, "") != "":
				key := hardware{attribute: pciAddress, value: value, node: *d.Slice.Spec.NodeName}
				devices[key] = append(devices[key], d)
			}
		}
	}
	var found []api.Finding
	for _, key := range slices.SortedFunc(maps.Keys(devices), func(a, b hardware) int {
		return cmp.Or(cmp.Compare(a.attribute, b.attribute), cmp.Compare(a.node, b.node), cmp.Compare(a.value, b.value))
	}) {
		list := devices[key]
		drivers := map[string]bool{}
		for _, d := range list {
			drivers[d.ID.Driver] = true
		}
		// One driver may publish the functions of a device under its address.
		if len(list) < 2 || key.attribute == pciAddress && len(drivers) < 2 {
			continue
		}
		var names []string
		f := api.Finding{}
		for _, d := range list {
			names = append(names, d.ID.String())
			if o := facts.SliceObject(d); !slices.Contains(f.Objects, o) {
				f.Objects = append(f.Objects, o)
			}
			f.Evidence = append(f.Evidence, api.Evidence{Object: facts.SliceObject(d), Path: facts.DevicePath(d, "attributes["+key.attribute+"]"), Found: key.value, Required: "a value of its own"})
		}
		f.Message = fmt.Sprintf("devices %s have the same %s %s: they are one piece of hardware", english.JoinAnd(names[:min(len(names), maxObjects)]), key.attribute, key.value)
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "let one driver publish it, and exclude it from the other"}
		found = append(found, f)
	}
	return found, nil
}

// typed is an attribute of a driver.
type typed struct{ driver, attribute string }

func findMixedTypes(_ context.Context, in *cluster) ([]api.Finding, error) {
	// first has, by type, a device that has it.
	first := map[typed]map[string]*facts.Device{}
	all := in.cluster.Pools.Devices()
	for i := range all {
		d := &all[i]
		for name, attribute := range d.Attributes {
			key := typed{d.ID.Driver, string(name)}
			if first[key] == nil {
				first[key] = map[string]*facts.Device{}
			}
			if kind := typeOf(attribute); first[key][kind] == nil {
				first[key][kind] = d
			}
		}
	}
	var found []api.Finding
	for _, key := range slices.SortedFunc(maps.Keys(first), func(a, b typed) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.attribute, b.attribute))
	}) {
		if len(first[key]) < 2 {
			continue
		}
		var kinds []string
		f := api.Finding{}
		for _, kind := range slices.Sorted(maps.Keys(first[key])) {
			d := first[key][kind]
			kinds = append(kinds, fmt.Sprintf("%s on %s", kind, d.ID))
			if o := facts.SliceObject(d); !slices.Contains(f.Objects, o) {
				f.Objects = append(f.Objects, o)
			}
			f.Evidence = append(f.Evidence, api.Evidence{Object: facts.SliceObject(d), Path: facts.DevicePath(d, "attributes["+key.attribute+"]"), Found: kind})
		}
		f.Message = fmt.Sprintf("attribute %s of driver %s has type %s", key.attribute, key.driver, english.JoinAnd(kinds))
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "run one version of the driver on all nodes"}
		found = append(found, f)
	}
	return found, nil
}

// typeOf returns the type of an attribute. A list and its single value compare as equal.
func typeOf(a resourceapi.DeviceAttribute) string {
	switch {
	case a.BoolValue != nil || len(a.BoolValues) > 0:
		return "bool"
	case a.IntValue != nil || len(a.IntValues) > 0:
		return "int"
	case a.VersionValue != nil || len(a.VersionValues) > 0:
		return "version"
	default:
		return "string"
	}
}
