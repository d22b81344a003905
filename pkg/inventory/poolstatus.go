// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// counts returns the numbers of a status, as they are.
func (s *poolStatus) counts() *api.ClusterCounts {
	c := &api.ClusterCounts{
		Request: s.request.Name, Total: s.TotalDevices, Allocated: s.AllocatedDevices,
		Available: s.AvailableDevices, Unavailable: s.UnavailableDevices, Error: ptr.Deref(s.ValidationError, ""),
	}
	if at := snapshot.AnsweredAt(s.request); !at.IsZero() {
		c.AnsweredAt = &at
	}
	return c
}

// learn compares a status with what can be seen. What contradicts itself, or
// is of another moment, is not used.
func (n *deviceCounter) learn(s *poolStatus, pool *cluster.Pool, t *tally) known {
	var k known
	differ := func(format string, args ...any) { k.differences = append(k.differences, fmt.Sprintf(format, args...)) }
	if s.TotalDevices == nil || s.AllocatedDevices == nil || s.AvailableDevices == nil || s.UnavailableDevices == nil {
		return k
	}
	if s.Generation != pool.Generation || int(*s.TotalDevices) != t.total {
		differ("the cluster counts %d devices of generation %d, the slices have %d of generation %d: the pool changed in between",
			*s.TotalDevices, s.Generation, t.total, pool.Generation)
		return k
	}
	if pool.Invalid != "" {
		// None of its devices is free, and names may be there twice.
		return k
	}
	gone := n.gone()[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}]
	k.rules = int(*s.UnavailableDevices) == t.tainted
	hidden := int(*s.AllocatedDevices) - t.inUse() - gone
	if !n.notRead.claims {
		k.differences = compare(n.notRead, s, t, gone)
		return k
	}
	switch {
	case hidden < 0:
		differ("the cluster counts %d allocated devices, and %d are seen: a claim changed in between", *s.AllocatedDevices, t.inUse()+gone)
		return k
	case hidden > t.open():
		differ("the cluster counts %d allocated devices, more than there can be: claims have some that no slice has any more, or changed in between", *s.AllocatedDevices)
		return k
	}
	k.claims, k.hidden, k.allHolders = true, hidden, hidden == 0
	k.consumed, k.allocatable = map[string]resource.Quantity{}, map[partitionKind]int{}
	if shareable := s.ShareableSummary; shareable != nil {
		if n.cluster.Gates.Enabled("DRAConsumableCapacity") && shareable.PartiallyAvailableDevices != nil {
			k.hiddenShared = int(*shareable.PartiallyAvailableDevices) - t.shareableInUse
			k.split = k.hiddenShared >= 0 && k.hiddenShared <= min(hidden, t.openShareable)
		}
		for _, c := range shareable.Capacity {
			if c.Consumed != nil {
				k.consumed[c.Name] = *c.Consumed
			}
		}
	}
	if !k.split {
		k.hiddenShared = 0
	}
	for _, p := range s.PartitionSummary {
		if p.Allocatable != nil {
			k.allocatable[partitionKind{p.Attribute, p.Type}] = int(*p.Allocatable)
		}
	}
	return k
}

// compare lists the differences between a status and the objects, if all of them were read,
// and the cluster's rules that explain them.
func compare(notRead notRead, s *poolStatus, t *tally, gone int) []string {
	var differences []string
	allocated, available, unavailable := int(*s.AllocatedDevices), int(*s.AvailableDevices), int(*s.UnavailableDevices)
	if used := t.inUse() + gone; allocated != used {
		differences = append(differences, fmt.Sprintf("the cluster counts %d allocated devices, and claims have %d: a claim changed in between", allocated, used))
		return differences
	}
	if unavailable != t.tainted && !notRead.rules {
		differences = append(differences, fmt.Sprintf("the cluster counts %d unavailable devices, and %d have a taint: a taint changed in between", unavailable, t.tainted))
		return differences
	}
	free := t.by[api.DeviceStateFree]
	if free == available {
		return nil
	}
	var reasons []string
	reason := func(n int, text string) {
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf("%d %s", n, text))
		}
	}
	reason(t.by[api.DeviceStateBlocked], "blocked by others, which it does not look at")
	reason(t.by[api.DeviceStateUnusable], "that the allocator does not look at")
	reason(t.taintedInUse, "tainted and in use, which it takes off twice")
	reason(gone, "of claims that no slice has any more")
	text := fmt.Sprintf("the cluster counts %d available devices, and %d are free", available, free)
	if len(reasons) > 0 {
		text += "; there are " + strings.Join(reasons, ", ")
	}
	return append(differences, text)
}
