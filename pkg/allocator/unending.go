// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// The functions in this file keep the program from waiting for a search that
// does not end. Where all quantities of the selectors are bounded it does, and
// they cost next to nothing.

// afterEnd is how long a search may go on after its context is done. Upstream
// looks at the context between devices, so that this is the time for one.
const afterEnd = time.Second

// errAbandoned is a search that went on after its context was done.
var errAbandoned = errors.New("the search goes on after its end")

// allocate searches until the context is done. Where expressions
// compute with quantities of any size, what goes on after that is left to itself.
func (a *Allocator) allocate(ctx context.Context, claims []*resourceapi.ResourceClaim, search func() ([]resourceapi.AllocationResult, error)) ([]resourceapi.AllocationResult, error) {
	if a.bounded(claims) {
		return guarded(search)
	}
	return awaited(ctx, afterEnd, func() ([]resourceapi.AllocationResult, error) { return guarded(search) })
}

// awaited waits for a search until some time after its context is done.
func awaited(ctx context.Context, after time.Duration, search func() ([]resourceapi.AllocationResult, error)) ([]resourceapi.AllocationResult, error) {
	type answer struct {
		allocations []resourceapi.AllocationResult
		err         error
	}
	answers := make(chan answer, 1)
	go func() {
		allocations, err := search()
		answers <- answer{allocations, err}
	}()
	select {
	case found := <-answers:
		return found.allocations, found.err
	case <-ctx.Done():
	}
	late := time.NewTimer(after)
	defer late.Stop()
	select {
	case found := <-answers:
		return found.allocations, found.err
	case <-late.C:
		return nil, errAbandoned
	}
}

// PanicError is a panic of the scheduler's allocator, which is a bug of it. What it would
// have found is not known.
type PanicError struct {
	// Message is the first line of what it says.
	Message string
}

// Error names the allocator, so that nobody looks for the reason in the cluster.
func (e *PanicError) Error() string {
	return "a bug of the scheduler's allocator, which panics: " + e.Message
}

// guarded turns a panic of the allocator into a [PanicError].
func guarded(search func() ([]resourceapi.AllocationResult, error)) (allocations []resourceapi.AllocationResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			message, _, _ := strings.Cut(fmt.Sprint(r), "\n")
			err = &PanicError{Message: message}
		}
	}()
	return search()
}

// eachAsked calls visit for each request and alternative, with the selectors of
// the class first, until it returns false.
func (a *Allocator) eachAsked(claims []*resourceapi.ResourceClaim, visit func(class, own asked) bool) {
	of := func(name string) asked {
		if class := a.Facts.Snapshot.Class(name); class != nil {
			return asked{selectors: class.Spec.Selectors}
		}
		return asked{}
	}
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[i]
			if exactly := request.Exactly; exactly != nil && !visit(of(exactly.DeviceClassName), asked{exactly.Selectors, exactly.DerivedAttributes}) {
				return
			}
			for j := range request.FirstAvailable {
				alternative := &request.FirstAvailable[j]
				if !visit(of(alternative.DeviceClassName), asked{alternative.Selectors, alternative.DerivedAttributes}) {
					return
				}
			}
		}
	}
}

// bounded reports whether no expression of the claims needs a trial.
func (a *Allocator) bounded(claims []*resourceapi.ResourceClaim) bool {
	bounded := true
	a.eachAsked(claims, func(class, own asked) bool {
		bounded = a.trial.areBounded(class) && a.trial.areBounded(own)
		return bounded
	})
	return bounded
}

// unending finds an expression that does not end on a device of the node, in
// the order in which the allocator evaluates them. The error is a
// [selector.UnendingError].
func (a *Allocator) unending(ctx context.Context, node *corev1.Node, claims []*resourceapi.ResourceClaim) error {
	if a.bounded(claims) {
		return nil
	}
	pools, err := a.Facts.Pools.For(node)
	if err != nil {
		// Upstream fails for the same reason and says so.
		return nil //nolint:nilerr // see above
	}
	a.trial.mutex.Lock()
	defer a.trial.mutex.Unlock()
	if a.trial.evaluator == nil {
		a.trial.evaluator = a.Facts.Gates.Selectors()
	}
	err = nil
	a.eachAsked(claims, func(class, own asked) bool {
		for _, pool := range pools {
			for i := range pool.Devices {
				if err = a.trial.device(ctx, &pool.Devices[i], class, own); err != nil {
					return false
				}
			}
		}
		return true
	})
	return err
}
