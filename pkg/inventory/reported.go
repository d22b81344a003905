// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// poolStatus is the report of a ResourcePoolStatusRequest about one pool.
type poolStatus struct {
	*resourcev1alpha3.PoolStatus
	request *resourcev1alpha3.ResourcePoolStatusRequest
}

// listStatuses finds the newest status of each pool.
func listStatuses(snap *snapshot.Snapshot) map[snapshot.PoolID]poolStatus {
	statuses := map[snapshot.PoolID]poolStatus{}
	for _, request := range snap.PoolStatuses {
		if request.Status == nil {
			continue
		}
		at := snapshot.AnsweredAt(request)
		for i := range request.Status.Pools {
			status := &request.Status.Pools[i]
			key := snapshot.PoolID{Driver: status.Driver, Name: status.PoolName}
			if other, ok := statuses[key]; ok {
				if before := snapshot.AnsweredAt(other.request); at.Before(&before) {
					continue
				}
			}
			statuses[key] = poolStatus{status, request}
		}
	}
	return statuses
}

// countGone counts the devices that claims have and no slice has any more.
func countGone(facts *cluster.Cluster) map[snapshot.PoolID]int {
	seen := map[cluster.DeviceID]bool{}
	gone := map[snapshot.PoolID]int{}
	for _, claim := range facts.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			id := deviceID(result)
			if ptr.Deref(result.AdminAccess, false) || seen[id] || facts.Pools.Device(id) != nil {
				continue
			}
			seen[id] = true
			gone[snapshot.PoolID{Driver: id.Driver, Name: id.Pool}]++
		}
	}
	return gone
}

// known has the facts that only the status of a pool has.
type known struct {
	// claims is true if hidden is how many devices the claims that were not read have. If split
	// is true, too, hiddenShared is how many of these are shared.
	claims, split        bool
	hidden, hiddenShared int
	// allHolders is true if no claim that was not read has a device that nobody seems to
	// have.
	allHolders bool
	// rules is true if no rule that was not read taints a device.
	rules bool
	// consumed is the consumption of all claims, by capacity; allocatable is how many more
	// partitions of a kind have their counters.
	consumed    map[string]resource.Quantity
	allocatable map[partitionKind]int
	// differences are contradictions.
	differences []string
}

// partitionKind has the common properties of devices of one kind.
type partitionKind struct{ attribute, value string }
