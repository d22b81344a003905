// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

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
