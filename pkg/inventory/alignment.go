// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// AlignmentOf compares the devices that are allocated to claims by the standard attributes that
// drivers share, PCI root and NUMA node (k8s.io/dynamic-resource-allocation/deviceattribute), and by
// those that the claims have constraints for. An attribute that no two of the devices have is left
// out, and so is everything if there are fewer than two devices.
func AlignmentOf(facts *cluster.Cluster, claims ...*resourceapi.ResourceClaim) []api.Alignment {
	var devices []*cluster.Device
	names := []resourceapi.FullyQualifiedName{
		resourceapi.FullyQualifiedName(deviceattribute.StandardDeviceAttributePCIeRoot),
		resourceapi.FullyQualifiedName(deviceattribute.StandardDeviceAttributeNUMANode),
	}
	unknown := 0
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			if d := facts.Pools.Device(cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}); d != nil {
				devices = append(devices, d)
			} else {
				unknown++
			}
		}
		for i := range claim.Spec.Devices.Constraints {
			if name := claim.Spec.Devices.Constraints[i].MatchAttribute; name != nil && !slices.Contains(names, *name) {
				names = append(names, *name)
			}
		}
	}
	var list []api.Alignment
	for _, name := range names {
		a := align(devices, name)
		if a.Without += unknown; len(devices)+unknown-a.Without < 2 {
			continue
		}
		a.Aligned = a.Aligned && unknown == 0
		a.Required = len(claims) == 1 && requires(claims[0], name)
		list = append(list, a)
	}
	return list
}

// align compares devices by an attribute. Devices with lists are aligned if an element is in all of
// them, as for the allocator.
func align(devices []*cluster.Device, name resourceapi.FullyQualifiedName) api.Alignment {
	a := api.Alignment{Attribute: string(name)}
	domain, id, _ := strings.Cut(string(name), "/")
	common := map[string]int{}
	for _, d := range devices {
		attribute, ok := selector.Lookup(d.Attributes, domain, id, d.ID.Driver)
		if !ok {
			a.Without++
			continue
		}
		for _, value := range selector.Values(attribute) {
			common[value]++
		}
		text := selector.Plain(attribute)
		at := slices.IndexFunc(a.Values, func(v api.AlignedValue) bool { return v.Value == text })
		if at < 0 {
			at, a.Values = len(a.Values), append(a.Values, api.AlignedValue{Value: text})
		}
		a.Values[at].Devices++
	}
	for _, count := range common {
		a.Aligned = a.Aligned || count == len(devices)
	}
	slices.SortStableFunc(a.Values, func(a, b api.AlignedValue) int {
		return cmp.Or(cmp.Compare(b.Devices, a.Devices), cmp.Compare(a.Value, b.Value))
	})
	return a
}

// requires reports whether a claim has a constraint that all of its devices have the same value of an
// attribute.
func requires(claim *resourceapi.ResourceClaim, name resourceapi.FullyQualifiedName) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Constraints, func(c resourceapi.DeviceConstraint) bool {
		return ptr.Deref(c.MatchAttribute, "") == name && (len(c.Requests) == 0 || !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
			return !slices.Contains(c.Requests, r.Request) && !slices.Contains(c.Requests, resourceclaim.BaseRequestRef(r.Request))
		}))
	})
}

// AlignmentText says in words what devices have in common.
func AlignmentText(a *api.Alignment) string {
	text := AlignmentName(a)
	if a.Aligned {
		text = "aligned by " + text
	} else {
		text = "not aligned by " + text
	}
	if a.Aligned && len(a.Values) == 1 {
		text += " " + a.Values[0].Value
	} else {
		values := make([]string, 0, len(a.Values)+1)
		for _, v := range a.Values {
			values = append(values, fmt.Sprintf("%s (%d)", v.Value, v.Devices))
		}
		if a.Without > 0 {
			values = append(values, fmt.Sprintf("no value (%d)", a.Without))
		}
		text += ": " + english.Sample(values, shownValues)
	}
	if a.Required {
		text += ", as required"
	}
	return text
}

// shownValues limits how many values of an attribute are named.
const shownValues = 5

// AlignmentName returns the name of an attribute, without the domain of standard ones.
func AlignmentName(a *api.Alignment) string {
	return strings.TrimPrefix(a.Attribute, deviceattribute.StandardDeviceAttributePrefix)
}
