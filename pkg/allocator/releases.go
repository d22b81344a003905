// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// WithPoolErrorsPerNode makes an error about an incomplete or invalid pool one of
// the node, whatever the release of the cluster does: for clusters whose release is
// not known. See [cluster.AllPoolErrorEndsAttempt].
func WithPoolErrorsPerNode() Option {
	return func(a *Allocator) { a.poolErrorsPerNode = true }
}

// byRelease says what an error on a node means for the others in the cluster's release.
func (a *Allocator) byRelease(v NodeVerdict) NodeVerdict {
	var panics *ReleasePanicError
	switch {
	case v.Outcome == Failed && errors.As(v.Err, &panics):
		upstream, fixed := a.Facts.Fixed(panics.Because)
		v.Err = fmt.Errorf("%s panics: %w (kubernetes/kubernetes#%d, fixed in %s)", a.Facts.Scheduler(), v.Err, upstream, fixed)
	case v.Outcome == Failed && a.poolErrorsPerNode && IsPoolError(v.Err):
		v.Outcome = NodeError
	}
	var unending *selector.UnendingError
	v.EndsAttempt = v.Outcome == Failed || v.Outcome == TimedOut && (a.Facts.Behaves(cluster.TimeoutEndsAttempt) || errors.As(v.Err, &unending))
	return v
}

// Panics reports whether an error is that the scheduler of the cluster's release panics.
func Panics(err error) bool {
	var panics *ReleasePanicError
	return errors.As(err, &panics)
}

// Differs reports whether the search of the cluster's release may end otherwise than the
// library's, for claims on a node. Counting devices by the rules of the library proves
// nothing then.
func (a *Allocator) Differs(node *corev1.Node, claims []*resourceapi.ResourceClaim) bool {
	return len(a.differences) > 0 && slices.ContainsFunc(a.differences, func(b cluster.Behavior) bool {
		switch b {
		case cluster.DistinctPerRequest:
			return slices.ContainsFunc(claims, distinct)
		case cluster.AllLeavesOutFull:
			return a.features.ConsumableCapacity && asks(claims, func(r *asking) bool { return r.all })
		case cluster.CapacityWraps:
			return a.features.ConsumableCapacity && asks(claims, func(r *asking) bool { return r.capacity })
		case cluster.CountsOverflow:
			return asks(claims, func(r *asking) bool { return r.count > resourceapi.AllocationResultsMaxSize })
		case cluster.AlternativesMixedUp:
			return asks(claims, func(r *asking) bool { return r.all && r.alternative })
		default:
			return a.features.PartitionableDevices && a.hasCounters(node)
		}
	})
}

// hasCounters reports whether a pool of a node has counters.
func (a *Allocator) hasCounters(node *corev1.Node) bool {
	pools, err := a.Facts.Pools.For(node)
	return err == nil && slices.ContainsFunc(pools, func(p *cluster.NodePool) bool {
		return slices.ContainsFunc(p.Pool.Slices, func(s *resourceapi.ResourceSlice) bool { return len(s.Spec.SharedCounters) > 0 }) ||
			slices.ContainsFunc(p.Slices, func(s *resourceapi.ResourceSlice) bool { return len(s.Spec.SharedCounters) > 0 })
	})
}

// asking has the parts of a request, or of an alternative, that decide about differences.
type asking struct {
	all, capacity, alternative bool
	count                      int64
}

func asks(claims []*resourceapi.ResourceClaim, is func(*asking) bool) bool {
	return slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
			return r.Exactly != nil && is(&asking{r.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll, r.Exactly.Capacity != nil, false, r.Exactly.Count}) ||
				slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool {
					return is(&asking{s.AllocationMode == resourceapi.DeviceAllocationModeAll, s.Capacity != nil, true, s.Count})
				})
		})
	})
}

func distinct(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Constraints, func(c resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil })
}

// asEarlier searches as the allocator of the cluster's release does.
func (a *Allocator) asEarlier(ctx context.Context, node *corev1.Node, claims []*resourceapi.ResourceClaim, behaves func(cluster.Behavior) bool) ([]resourceapi.AllocationResult, error) {
	pools, err := a.Facts.Pools.For(node)
	if err != nil {
		return nil, err
	}
	return Allocate(ctx, Question{
		Facts: a.Facts, Node: node, Pools: pools, Claims: claims, Behaves: behaves,
		Matches: func(ctx context.Context, expression string, d *cluster.Device) (bool, error) {
			compiled := a.celCache.GetOrCompile(expression)
			if compiled.Error != nil {
				return false, fmt.Errorf("CEL compile error: %w", compiled.Error)
			}
			seen := cel.Device{Driver: d.ID.Driver, Attributes: d.Attributes, Capacity: d.Capacity}
			if a.Facts.Gates.Channel() != cluster.ChannelStable {
				seen.AllowMultipleAllocations = d.AllowMultipleAllocations
			}
			matches, _, err := compiled.DeviceMatches(ctx, seen)
			if err != nil {
				return false, fmt.Errorf("CEL runtime error: %w", err)
			}
			return matches, nil
		},
	})
}

// Because finds the bug of the cluster's release that decides about claims on a node: without
// it, the outcome is another one. It is empty if there is none.
func (a *Allocator) Because(ctx context.Context, node *corev1.Node, claims []*resourceapi.ResourceClaim, fits bool) cluster.Behavior {
	if !a.Differs(node, claims) {
		return ""
	}
	without := map[cluster.Behavior]bool{}
	decides := func() bool {
		allocations, err := a.asEarlier(ctx, node, claims, func(b cluster.Behavior) bool { return a.Facts.Behaves(b) && !without[b] })
		return ctx.Err() == nil && (err == nil && allocations != nil) != fits
	}
	for _, b := range a.differences {
		without[b] = true
		if decides() {
			return b
		}
		delete(without, b)
	}
	// Several that decide only together: the last one of them.
	for _, b := range a.differences {
		without[b] = true
		if decides() {
			return b
		}
	}
	return ""
}

// IsPoolError reports whether a request for all devices met an incomplete or
// invalid pool. Upstream has no error types, only texts (validateDeviceRequest in
// structured/internal/*/allocator_*.go).
func IsPoolError(err error) bool {
	return strings.Contains(err.Error(), "asks for all devices, but resource pool")
}

// TakesAllWithCounters reports whether a request for all devices gets a device that
// consumes counters.
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
