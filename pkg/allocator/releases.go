// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/behavior"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// WithPoolErrorsPerNode makes an error about an incomplete or invalid pool one of
// the node, whatever the release of the cluster does: for clusters whose release is
// not known. See [behavior.AllPoolErrorEndsAttempt].
func WithPoolErrorsPerNode() Option {
	return func(a *Allocator) { a.poolErrorsPerNode = true }
}

// byRelease turns the library's verdict into that of the cluster's release, where
// the table of behavior says that it differs.
func (a *Allocator) byRelease(v Verdict, claims []*resourceapi.ResourceClaim) Verdict {
	switch {
	case v.Outcome == Failed && a.poolErrorsPerNode && IsPoolError(v.Err):
		v.Outcome = NodeError
	case v.Outcome == Fits && a.Facts.Behaves(behavior.AllWithCountersPanics) && TakesAllWithCounters(a.Facts, claims, v.Allocations):
		v.Outcome, v.Allocations = Failed, nil
		v.Err = fmt.Errorf("kube-scheduler %s panics when a request for all devices takes one that consumes counters (kubernetes/kubernetes#138885)", a.Facts.Snapshot.BinaryVersion())
	}
	var unending *selector.UnendingError
	v.EndsAttempt = v.Outcome == Failed || v.Outcome == TimedOut && (a.Facts.Behaves(behavior.TimeoutEndsAttempt) || errors.As(v.Err, &unending))
	return v
}

// IsPoolError reports whether a request for all devices met an incomplete or
// invalid pool. Upstream has no error types, only texts (validateDeviceRequest in
// structured/internal/*/allocator_*.go).
func IsPoolError(err error) bool {
	return strings.Contains(err.Error(), "asks for all devices, but resource pool")
}

// TakesAllWithCounters reports whether a device that consumes counters is among
// those of a request for all devices.
func TakesAllWithCounters(facts *cluster.Cluster, claims []*resourceapi.ResourceClaim, allocations []resourceapi.AllocationResult) bool {
	for i := range allocations {
		for _, result := range allocations[i].Devices.Results {
			if !asksForAll(claims[i], result.Request) {
				continue
			}
			device := facts.Pools.Device(cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device})
			if device != nil && len(device.ConsumesCounters) > 0 {
				return true
			}
		}
	}
	return false
}

// asksForAll reports whether the request of a result, which names an alternative
// as "request/alternative", is one for all devices.
func asksForAll(claim *resourceapi.ResourceClaim, name string) bool {
	for _, r := range claim.Spec.Devices.Requests {
		if r.Exactly != nil && r.Name == name && r.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll {
			return true
		}
		for _, alternative := range r.FirstAvailable {
			if r.Name+"/"+alternative.Name == name && alternative.AllocationMode == resourceapi.DeviceAllocationModeAll {
				return true
			}
		}
	}
	return false
}
