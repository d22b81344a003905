// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocators

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// question is a question to allocators: claims and nodes of a snapshot without a release.
type question struct {
	name   string
	snap   *snapshot.Snapshot
	claims []*resourceapi.ResourceClaim
	// features are the names of the features that have to be on. Where they are nil, the
	// question is asked with several sets of gates.
	features map[string]bool
}

// gateOf returns the gates behind the features of the allocator.
func gateOf() map[string][]string {
	return map[string][]string{
		"AdminAccess": {"DRAAdminAccess"}, "CompatibilityGroups": {"DRADeviceCompatibilityGroups"}, "ConsumableCapacity": {"DRAConsumableCapacity"},
		"DerivedAttributes": {"DRADerivedAttributes"}, "DeviceBindingAndStatus": {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"},
		"DeviceTaints": {"DRADeviceTaints"}, "FractionalCapacityRange": {"DRAFractionalCapacityRange"}, "ListTypeAttributes": {"DRAListTypeAttributes"},
		"OptionalNodeOperations": {"DRAOptionalNodeOperations"}, "PartitionableDevices": {"DRAPartitionableDevices"}, "PrioritizedList": {"DRAPrioritizedList"},
	}
}

// tableQuestions returns the questions of upstream's table. Fields that a release does not
// know are dropped by its API server.
func tableQuestions(t *testing.T, rows []byte, release string) []*question {
	t.Helper()
	// The table is a map.
	sorted := bytes.SplitAfter(rows, []byte("\n"))
	slices.SortFunc(sorted, bytes.Compare)
	var all []*question
	for decoder := json.NewDecoder(bytes.NewReader(bytes.Join(sorted, nil))); decoder.More(); {
		var row struct {
			Features        map[string]bool
			Node            *corev1.Node
			Classes         []*resourceapi.DeviceClass
			Slices          []*resourceapi.ResourceSlice
			Claims          []*resourceapi.ResourceClaim
			Devices, Shares []string
			Capacity        map[string]map[resourceapi.QualifiedName]resource.Quantity
		}
		if err := decoder.Decode(&row); err != nil {
			t.Fatal(err)
		}
		q := &question{
			name: fmt.Sprintf("row %d", len(all)), features: row.Features, claims: row.Claims,
			snap: &snapshot.Snapshot{Nodes: []*corev1.Node{row.Node}, Classes: row.Classes, Slices: row.Slices},
		}
		if release < "1.37" {
			for _, s := range row.Slices {
				for i := range s.Spec.Devices {
					for j := range s.Spec.Devices[i].ConsumesCounters {
						s.Spec.Devices[i].ConsumesCounters[j].CompatibilityGroups = nil
					}
				}
			}
		}
		holder := &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}}}
		holder.Namespace, holder.Name = "other", "holder"
		add := func(id string, share *types.UID, capacity map[resourceapi.QualifiedName]resource.Quantity) {
			part := strings.SplitN(id, "/", 3)
			results := &holder.Status.Allocation.Devices.Results
			*results = append(*results, resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: part[0], Pool: part[1], Device: part[2], ShareID: share, ConsumedCapacity: capacity})
		}
		for _, id := range row.Devices {
			add(id, nil, nil)
		}
		for _, id := range row.Shares {
			at := strings.LastIndex(id, "/")
			add(id[:at], ptr.To(types.UID(id[at+1:])), row.Capacity[id[:at]])
			delete(row.Capacity, id[:at])
		}
		for id, capacity := range row.Capacity {
			add(id, ptr.To(types.UID("share-"+id)), capacity)
		}
		q.snap.Claims = append([]*resourceapi.ResourceClaim{holder}, row.Claims...)
		all = append(all, q)
	}
	return all
}

// hasLists reports whether a device has an attribute that is a list, which no API server
// stores while the gate for them is off.
func hasLists(snap *snapshot.Snapshot) bool {
	return slices.ContainsFunc(snap.Slices, func(s *resourceapi.ResourceSlice) bool {
		return slices.ContainsFunc(s.Spec.Devices, func(d resourceapi.Device) bool {
			for _, a := range d.Attributes {
				if selector.IsList(a) {
					return true
				}
			}
			return false
		})
	})
}

// randomQuestion returns a random cluster with what the bugs of allocators are about. What
// a release does not know, its API server drops.
func randomQuestion(seed uint64, release string) *question {
	c := fleet.Random(seed)
	if release < "1.37" {
		for _, feature := range []string{fleet.DerivedAttributes, fleet.CompatibilityGroups, fleet.NodeOperations} {
			c = c.Without(feature)
		}
	}
	if release < "1.36" {
		c = c.Without(fleet.ListAttributes)
	}
	if seed%3 > 0 {
		// Errors of selectors hide what comes later.
		c = c.Without(fleet.FailingSelectors).Without(fleet.Mistakes)
	}
	r := rand.New(rand.NewPCG(seed, 11)) //nolint:gosec // the same cases each time
	chance := func(percent int) bool { return r.IntN(100) < percent }
	claims := c.Claims()
	if chance(30) {
		sameNames(c.Snapshot)
	}
	partition(c.Snapshot, r)
	for _, claim := range c.Snapshot.Claims {
		if claim.Status.Allocation != nil && chance(20) {
			for i := range claim.Status.Allocation.Devices.Results {
				claim.Status.Allocation.Devices.Results[i].ConsumedCapacity = nil
			}
		}
	}
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			vary(&claim.Spec.Devices.Requests[i], r)
		}
	}
	return &question{name: fmt.Sprintf("seed %d", seed), snap: c.Snapshot, claims: claims}
}

// sameNames gives pools of different drivers the same name.
func sameNames(snap *snapshot.Snapshot) {
	renamed := map[string]bool{}
	for _, s := range snap.Slices {
		if s.Spec.Driver == fleet.Links {
			renamed[s.Spec.Pool.Name] = true
			s.Spec.Pool.Name = "pool-0"
		}
	}
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			if d := &claim.Status.Allocation.Devices.Results[i]; d.Driver == fleet.Links && renamed[d.Pool] {
				d.Pool = "pool-0"
			}
		}
	}
	if len(renamed) > 1 {
		counts := map[string]int64{}
		for _, s := range snap.Slices {
			counts[s.Spec.Driver+s.Spec.Pool.Name]++
		}
		for _, s := range snap.Slices {
			s.Spec.Pool.ResourceSliceCount = counts[s.Spec.Driver+s.Spec.Pool.Name]
		}
	}
}

// partition makes devices of pools with counters tainted, shared, or without capacity.
func partition(snap *snapshot.Snapshot, r *rand.Rand) {
	for _, s := range snap.Slices {
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			if len(d.ConsumesCounters) == 0 {
				continue
			}
			if r.IntN(5) == 0 {
				d.Taints = []resourceapi.DeviceTaint{{Key: "x", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
			}
			if r.IntN(5) == 0 {
				d.Capacity = nil
			}
		}
	}
}

// vary makes a request ask for more than the allocator can count, or alternatives for all
// devices.
func vary(request *resourceapi.DeviceRequest, r *rand.Rand) {
	if exact := request.Exactly; exact != nil {
		if exact.AllocationMode == resourceapi.DeviceAllocationModeExactCount && r.IntN(12) == 0 {
			exact.Count = []int64{math.MaxInt64, math.MaxInt64/2 + 1, 33}[r.IntN(3)]
		}
		if exact.Capacity != nil && r.IntN(6) == 0 {
			exact.Capacity.Requests["memory"] = *resource.NewQuantity(math.MaxInt64-int64(r.IntN(3)), resource.DecimalSI)
		}
	}
	for i := range request.FirstAvailable {
		alternative := &request.FirstAvailable[i]
		switch r.IntN(6) {
		case 0:
			alternative.AllocationMode, alternative.Count = resourceapi.DeviceAllocationModeAll, 0
		case 1:
			alternative.AllocationMode, alternative.Count = resourceapi.DeviceAllocationModeAll, 0
			alternative.Selectors = slices.Clone(alternative.Selectors[:0])
		}
	}
}
