// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// UndecidedError means that the allocator has no answer for a node: it fails, or the
// scheduler would give up the search.
type UndecidedError struct {
	Node string
	Err  error
	// EndsAttempt is set if the scheduler of the cluster's release then tries no other
	// node.
	EndsAttempt bool
}

// Error says where, and why.
func (e *UndecidedError) Error() string { return fmt.Sprintf("check node %s: %v", e.Node, e.Err) }

// Unwrap returns the error of the allocator.
func (e *UndecidedError) Unwrap() error { return e.Err }

// Place looks for the first of some nodes, or of all nodes for nil, that a pod fits on,
// and says what it gets there. It is nil if there is none. It fails with an
// [*UndecidedError] if the allocator has no answer for a node where that ends the
// attempt, or if the pod fits on none of the others; all other errors are from ctx.
func Place(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod, nodes []*corev1.Node) (*whatif.Reservation, error) {
	if nodes == nil {
		nodes, _ = c.Nodes.All()
	}
	attempt := NewAttempt(c, pod)
	var unknown error
	for _, node := range nodes {
		r, err := attempt.On(ctx, node)
		var undecided *UndecidedError
		switch {
		case r != nil:
			return r, nil
		case errors.As(err, &undecided) && !undecided.EndsAttempt:
			unknown = cmp.Or(unknown, err)
		case err != nil:
			return nil, err
		}
	}
	return nil, unknown
}

// Attempt is a pod that is to be placed in a cluster. Its claims are found once for all
// nodes.
type Attempt struct {
	cluster *cluster.Cluster
	pod     *corev1.Pod
	claims  []cluster.PodClaim
}

// NewAttempt prepares the placement of a pod, which the cluster need not have.
func NewAttempt(c *cluster.Cluster, pod *corev1.Pod) *Attempt {
	return &Attempt{cluster: c, pod: pod, claims: c.Claims.OfPod(pod)}
}

// Problem returns why the scheduler would not try to schedule the pod at all, nil if it
// does. Claims that are yet to be created are no problem.
func (a *Attempt) Problem() error {
	for i := range a.claims {
		if problem := a.claims[i].Problem; problem != nil && !a.claims[i].Generated {
			return problem
		}
	}
	return nil
}

// On tries a node. The reservation is nil if the pod does not fit there. On fails with the
// same errors as [Place].
func (a *Attempt) On(ctx context.Context, node *corev1.Node) (*whatif.Reservation, error) {
	if len(a.cluster.Nodes.Fit(a.pod, node)) > 0 {
		return nil, nil
	}
	r, pending, fits := a.claimsOn(node)
	if !fits {
		return nil, nil
	}
	switch verdict := Of(a.cluster).Check(ctx, node, pending); verdict.Outcome {
	case Fits:
		next := 0
		for i := range r.Claims {
			if r.Claims[i].Claim.Status.Allocation == nil {
				r.Claims[i].Allocation = &verdict.Allocations[next]
				next++
			}
		}
		return r, nil
	case Cancelled, GivenUp:
		return nil, verdict.Err
	case TimedOut, Failed:
		return nil, &UndecidedError{Node: node.Name, Err: verdict.Err, EndsAttempt: verdict.EndsAttempt}
	default:
		return nil, nil
	}
}

// claimsOn returns the claims of the pod as they are on a node, and the claims among them
// that need devices; false if one has devices that cannot be used there.
func (a *Attempt) claimsOn(node *corev1.Node) (r *whatif.Reservation, pending []*resourceapi.ResourceClaim, fits bool) {
	known := a.cluster.Claims
	r = &whatif.Reservation{Pod: a.pod, Node: node.Name}
	for i := range a.claims {
		pc := &a.claims[i]
		part := whatif.ClaimReservation{Entry: pc.Entry, Group: pc.Group, Claim: pc.Claim}
		if pc.ExtendedResources {
			var err error
			if part.Claim, err = known.ExtendedResourceClaim(a.pod, node); err != nil {
				return nil, nil, false
			}
			if part.Claim != nil {
				part.Mappings = cluster.ExtendedResourceMappings(a.pod, part.Claim)
			}
		}
		switch {
		case part.Claim == nil:
			// It is not known, or a device plugin of the node has the resources.
			continue
		case part.Claim.Status.Allocation == nil:
			pending = append(pending, part.Claim)
		default:
			if available, _ := known.AvailableOn(part.Claim, node); !available {
				return nil, nil, false
			}
		}
		r.Claims = append(r.Claims, part)
	}
	return r, pending, true
}

// Victims returns the pods on a node, out of some, that would have to be deleted for
// another one to fit there; none of them can stay. Pods of the highest priority stay first,
// and of these the oldest, as in preemption
// (pkg/scheduler/framework/plugins/defaultpreemption). It is nil if the pod does not fit
// with all of them deleted, or fits with none of them deleted.
func Victims(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod, node *corev1.Node, from []*corev1.Pod) ([]*corev1.Pod, error) {
	fits := func(without []*corev1.Pod) (bool, error) {
		after := c
		if len(without) > 0 {
			after = c.Amended(whatif.Delete(c.Snapshot, without))
		}
		r, err := NewAttempt(after, pod).On(ctx, node)
		var undecided *UndecidedError
		if errors.As(err, &undecided) {
			err = nil
		}
		return r != nil, err
	}
	victims := slices.SortedStableFunc(slices.Values(from), func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)),
			started(a).Compare(started(b)),
			strings.Compare(a.Name, b.Name),
		)
	})
	if ok, err := fits(victims); !ok || err != nil {
		return nil, err
	}
	for i := 0; i < len(victims); {
		others := slices.Delete(slices.Clone(victims), i, i+1)
		ok, err := fits(others)
		switch {
		case err != nil:
			return nil, err
		case ok:
			victims = others
		default:
			i++
		}
	}
	return victims, nil
}

// started returns since when a pod runs, as far as that is known.
func started(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

// Score returns the score that the scheduler's dynamicresources plugin gives a node before
// normalization: the sooner an alternative of a prioritized list comes, the more points it
// brings. Claims are all of the pod's in order, allocations those that [Allocator.Check]
// gave for the ones without an allocation.
func Score(claims []*resourceapi.ResourceClaim, allocations []resourceapi.AllocationResult) int64 {
	var score int64
	for _, claim := range claims {
		allocation := claim.Status.Allocation
		if allocation == nil {
			if len(allocations) == 0 {
				break
			}
			allocation, allocations = &allocations[0], allocations[1:]
		}
		chosen := sets.New[string]()
		for i := range allocation.Devices.Results {
			chosen.Insert(allocation.Devices.Results[i].Request)
		}
		for i := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[i]
			for j := range request.FirstAvailable {
				if chosen.Has(resourceclaim.CreateSubRequestRef(request.Name, request.FirstAvailable[j].Name)) {
					score += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - j)
				}
			}
		}
	}
	return score
}
