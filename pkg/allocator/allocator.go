// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// filterTimeout is the scheduler's limit for one node and attempt, the default
// of filterTimeout in DynamicResourcesArgs.
const filterTimeout = 10 * time.Second

// Option changes how an [Allocator] works.
type Option func(*Allocator)

// WithTimeout replaces the scheduler's limit for one node: 10 seconds, or none
// if DRASchedulerFilterTimeout is off. Zero means no limit.
func WithTimeout(limit time.Duration) Option {
	return func(a *Allocator) { a.timeout = limit }
}

// Allocator gives verdicts for one snapshot. It is safe for concurrent use.
type Allocator struct {
	// Facts are the facts of the cluster.
	Facts *cluster.Cluster

	opts    []Option
	timeout time.Duration
	// poolErrorsPerNode is the opposite of [cluster.AllPoolErrorEndsAttempt].
	poolErrorsPerNode bool
	// differences are the behaviors of the search that the release has, see [Allocator.Differs].
	differences []cluster.Behavior

	features structured.Features
	celCache *cel.Cache
	// state has all that is in use.
	state func() *allocatedState

	// upstream has the allocators made so far, by the set of pools they know, and gathered
	// counts the devices collected for them.
	mutex    sync.Mutex
	upstream map[string]structured.Allocator
	gathered int

	trial *trial
}

// Of returns the allocator of a cluster.
func Of(c *cluster.Cluster) *Allocator {
	return cluster.Remember(c, func() *Allocator { return allocatorFor(c, nil) })
}

// Reopen returns the same cluster with an allocator that has options, for answers that
// must not depend on what the cluster's own allocator does.
func Reopen(c *cluster.Cluster, opts ...Option) *cluster.Cluster {
	again := c.Forgetful()
	cluster.Remember(again, func() *Allocator { return allocatorFor(again, opts) })
	return again
}

func allocatorFor(facts *cluster.Cluster, opts []Option) *Allocator {
	a := &Allocator{Facts: facts, opts: opts, features: featuresOf(facts.Gates), upstream: map[string]structured.Allocator{}, trial: &trial{}}
	// The scheduler keeps the last ten expressions, which here would mean
	// to compile some of them for each node. Zero keeps all.
	a.celCache = cel.NewCache(0, facts.Gates.CEL())
	a.state = sync.OnceValue(func() *allocatedState {
		return gatherState(facts.Snapshot.Claims, a.features.ConsumableCapacity)
	})
	if facts.Gates.Enabled(cluster.GateFilterTimeout) {
		a.timeout = filterTimeout
	}
	for _, b := range searchBehaviors() {
		if facts.Behaves(b) {
			a.differences = append(a.differences, b)
		}
	}
	a.poolErrorsPerNode = !facts.Behaves(cluster.AllPoolErrorEndsAttempt)
	for _, opt := range opts {
		opt(a)
	}
	return a
}

// searchBehaviors lists the behaviors of earlier releases that [Allocate] repeats.
// [cluster.Permutes] alone changes no verdict.
func searchBehaviors() []cluster.Behavior {
	return []cluster.Behavior{
		cluster.AllWithCountersPanics, cluster.CountsOverflow, cluster.RejectedKeepsCounters, cluster.CountersByPoolName,
		cluster.SharesChargedTwice, cluster.SharesNotCharged, cluster.CountersConcernAll, cluster.DistinctPerRequest,
		cluster.AllLeavesOutFull, cluster.CapacityWraps, cluster.AlternativesMixedUp,
	}
}

// Follow returns an allocator with the same options for the cluster after a change. It knows
// the compiled expressions of this one.
func (a *Allocator) Follow(c *cluster.Cluster, _ *cluster.Delta) cluster.Follower {
	after := allocatorFor(c, a.opts)
	if after.features == a.features {
		after.celCache, after.trial = a.celCache, a.trial
	}
	return after
}

// featuresOf derives what the allocator is told from the gates, as
// AllocatorFeatures of the scheduler's dynamicresources plugin does.
func featuresOf(gates *cluster.Gates) structured.Features {
	return structured.Features{
		AdminAccess:             gates.Enabled(cluster.GateAdminAccess),
		CompatibilityGroups:     gates.Enabled(cluster.GateCompatibilityGroups),
		ConsumableCapacity:      gates.Enabled(cluster.GateConsumableCapacity),
		DerivedAttributes:       gates.Enabled(cluster.GateDerivedAttributes),
		DeviceBindingAndStatus:  gates.BindingConditions(),
		DeviceTaints:            gates.Enabled(cluster.GateDeviceTaints),
		FractionalCapacityRange: gates.Enabled(cluster.GateFractionalCapacity),
		ListTypeAttributes:      gates.ListsCompared(),
		OptionalNodeOperations:  gates.Enabled(cluster.GateOptionalNodeOps),
		PartitionableDevices:    gates.Enabled(cluster.GatePartitionableDevices),
		PrioritizedList:         gates.Enabled(cluster.GatePrioritizedList),
	}
}

// classLister serves the snapshot's classes to the allocator.
type classLister struct {
	snap *snapshot.Snapshot
}

func (l classLister) List() ([]*resourceapi.DeviceClass, error) {
	return l.snap.Classes, nil
}

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	class := l.snap.Class(name)
	if class == nil {
		return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
	}
	return class, nil
}

// Outcome is how an attempt to allocate claims for a node ended.
type Outcome string

const (
	// Fits means that there are devices for all claims.
	Fits Outcome = "Fits"
	// DoesNotFit means that the allocator looked at everything and found no
	// solution.
	DoesNotFit Outcome = "DoesNotFit"
	// NodeError means that the allocator found no solution and that something
	// about this node (an invalid pool) may be the reason. Other nodes are
	// tried.
	NodeError Outcome = "NodeError"
	// Failed means that the allocator or the scheduler gave up with an error, which
	// ends the attempt for all nodes.
	Failed Outcome = "Failed"
	// TimedOut means that the search took longer than the scheduler lets it. In most
	// releases that ends the attempt for all nodes. Where Err is a
	// [selector.UnendingError] the scheduler may not even notice.
	TimedOut Outcome = "TimedOut"
	// Cancelled means that the caller's context was done.
	Cancelled Outcome = "Cancelled"
	// GivenUp means that the search takes more steps than the caller's [Budget]
	// has. Err is [ErrBudgetSpent].
	GivenUp Outcome = "GivenUp"
	// NotTried means that an earlier node ended the attempt for all nodes.
	NotTried Outcome = "NotTried"
)

// NodeVerdict is the allocator's answer for one node.
type NodeVerdict struct {
	Outcome Outcome
	// Allocations has one entry for each claim if the outcome is Fits.
	Allocations []resourceapi.AllocationResult
	// Err is set for all outcomes but Fits, DoesNotFit and NotTried.
	Err error
	// EndsAttempt is true if the scheduler of the cluster's release then tries no
	// other node.
	EndsAttempt bool
	// Duration is how long the allocator took.
	Duration time.Duration
}

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

// trial evaluates what upstream must not evaluate before it is known to end.
type trial struct {
	// bounded remembers of expressions whether they need no trial.
	bounded sync.Map
	// mutex is for the evaluator, which is made when it is needed.
	mutex     sync.Mutex
	evaluator *selector.Evaluator
}

func (t *trial) isBounded(expression string) bool {
	if known, ok := t.bounded.Load(expression); ok {
		return known == true
	}
	bounded := selector.Bounded(expression)
	t.bounded.Store(expression, bounded)
	return bounded
}

func (t *trial) areBounded(of asked) bool {
	for i := range of.selectors {
		if cel := of.selectors[i].CEL; cel != nil && !t.isBounded(cel.Expression) {
			return false
		}
	}
	for i := range of.derived {
		if !t.isBounded(of.derived[i].Expression) {
			return false
		}
	}
	return true
}

// asked has the requirements of a request, or an alternative, on a device.
type asked struct {
	selectors []resourceapi.DeviceSelector
	derived   []resourceapi.DeviceDerivedAttribute
}

// device evaluates the selectors up to the first decisive one and, where all hold, the
// derived attributes.
func (t *trial) device(ctx context.Context, d *cluster.Device, class, own asked) error {
	var unending *selector.UnendingError
	for _, selectors := range [][]resourceapi.DeviceSelector{class.selectors, own.selectors} {
		for i := range selectors {
			if selectors[i].CEL == nil {
				continue
			}
			result := t.evaluator.Evaluate(ctx, t.evaluator.Compile(selectors[i].CEL.Expression), d.ID.Driver, d.Device)
			if errors.As(result.Err, &unending) {
				return unending
			}
			if !result.Matches {
				return nil
			}
		}
	}
	for i := range own.derived {
		if _, err := t.evaluator.DerivedAttribute(ctx, &own.derived[i], d.ID.Driver, d.Device); errors.As(err, &unending) {
			return unending
		}
	}
	return nil
}

// allocatedState is which devices are in use, as upstream takes it.
type allocatedState struct {
	structured.AllocatedState
	consumableCapacity bool
	// shares has the shares by pool.
	shares map[snapshot.PoolID][]structured.SharedDeviceID
}

func newState(consumableCapacity bool) *allocatedState {
	return &allocatedState{
		AllocatedState: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
		consumableCapacity: consumableCapacity,
		shares:             map[snapshot.PoolID][]structured.SharedDeviceID{},
	}
}

// of returns the state for an allocator that only knows the given pools.
// Devices are looked up by their ID, so devices of other pools make no
// difference. Upstream searches the shares one by one, however, for many
// devices, so it is worth leaving out other pools.
func (s *allocatedState) of(pools []*cluster.Pool) structured.AllocatedState {
	state := s.AllocatedState
	if len(state.AllocatedSharedDeviceIDs) == 0 {
		return state
	}
	state.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
	for _, pool := range pools {
		state.AllocatedSharedDeviceIDs.Insert(s.shares[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}]...)
	}
	return state
}

// gatherState collects the devices in use as [cluster.Usage] does.
func gatherState(claims []*resourceapi.ResourceClaim, consumableCapacity bool) *allocatedState {
	s := newState(consumableCapacity)
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			s.add(&results[i])
		}
	}
	return s
}

// stateOf collects the devices in use of some pools, and counts them.
func stateOf(usage *cluster.Usage, pools []*cluster.Pool, consumableCapacity bool) (state structured.AllocatedState, devices int) {
	s := newState(consumableCapacity)
	for _, pool := range pools {
		for holder := range usage.OfPool(pool.Driver, pool.Name).Holders() {
			s.add(holder.Result)
			devices++
		}
	}
	return s.AllocatedState, devices
}

func (s *allocatedState) add(result *resourceapi.DeviceRequestAllocationResult) {
	if ptr.Deref(result.AdminAccess, false) {
		return
	}
	unique := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
	if !s.consumableCapacity || result.ShareID == nil {
		s.AllocatedDevices.Insert(unique)
		return
	}
	share := structured.MakeSharedDeviceID(unique, result.ShareID)
	s.AllocatedSharedDeviceIDs.Insert(share)
	pool := snapshot.PoolID{Driver: result.Driver, Name: result.Pool}
	s.shares[pool] = append(s.shares[pool], share)
	if result.ConsumedCapacity != nil {
		s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(unique, result.ConsumedCapacity))
	}
}
