// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

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

// Allocator answers for one snapshot. It is safe for concurrent use.
type Allocator struct {
	snap     *snapshot.Snapshot
	opts     []Option
	timeout  time.Duration
	gates    map[string]snapshot.Gate
	features structured.Features
	channel  string
	celCache *cel.Cache
	// tolerationOperators is the gate TaintTolerationComparisonOperators.
	tolerationOperators bool

	pools   poolIndex
	state   allocatedState
	classes classLister
	// classOf finds the class that backs an extended resource; nil while the
	// feature is off, and then it finds nothing.
	classOf *extendedresourcecache.ExtendedResourceCache

	// upstream has the allocators made so far, by the set of pools they know.
	mutex    sync.Mutex
	upstream map[string]structured.Allocator

	trial trial

	// views has what was asked for so far by PoolsFor.
	views *viewCache

	// partitions has what was asked for so far by PartitionUse.
	partitionMutex sync.Mutex
	partitions     map[*Pool]*PartitionUse

	// neighbors has what was asked for so far about pods, by pod.
	neighbors sync.Map
	placed    func() []placedPod

	devices    func() deviceTable
	ineligible func() ineligibilities
	usage      func() map[string]*nodeUsage
	nodes      func() []*corev1.Node
	extended   func() map[podKey]*resourceapi.ResourceClaim
}

// New prepares everything that is the same for all nodes. The snapshot must
// not change afterwards; nothing in it is changed. It fails only if the
// context is done.
func New(ctx context.Context, snap *snapshot.Snapshot, opts ...Option) (*Allocator, error) {
	return build(ctx, snap, nil, opts...)
}

// Amended returns an allocator with the same options for another snapshot. It
// takes less time than [New] where the snapshots have selectors in common, and
// much less where only claims and pods differ.
func (a *Allocator) Amended(ctx context.Context, snap *snapshot.Snapshot) (*Allocator, error) {
	return build(ctx, snap, a, a.opts...)
}

func build(ctx context.Context, snap *snapshot.Snapshot, sibling *Allocator, opts ...Option) (*Allocator, error) {
	a := &Allocator{
		snap:     snap,
		opts:     opts,
		gates:    resolveGates(snap),
		classes:  classLister{snap},
		upstream: map[string]structured.Allocator{},

		partitions: map[*Pool]*PartitionUse{},
	}
	a.features = allocatorFeatures(a.FeatureEnabled)
	a.tolerationOperators = a.FeatureEnabled("TaintTolerationComparisonOperators")
	if a.FeatureEnabled(gateFilterTimeout) {
		a.timeout = filterTimeout
	}
	for _, opt := range opts {
		opt(a)
	}
	if sibling != nil && sibling.features == a.features {
		a.celCache = sibling.celCache
	} else {
		// The scheduler keeps the last ten expressions, which here would mean
		// to compile some of them for each node. Zero keeps all.
		a.celCache = cel.NewCache(0, a.celFeatures())
	}
	channel, err := channelOf(ctx, a.features)
	if err != nil {
		return nil, err
	}
	a.channel = channel
	if sibling != nil && sibling.publishes(a) {
		a.pools, a.views = sibling.pools, sibling.views
		a.devices, a.ineligible, a.nodes = sibling.devices, sibling.ineligible, sibling.nodes
	} else {
		a.pools = indexPools(patchedSlices(snap, a.taintRulesEnabled()), a.features, channel == channelStable)
		a.views = &viewCache{of: map[*corev1.Node]nodeViews{}}
		a.devices = sync.OnceValue(a.listDevices)
		a.ineligible = sync.OnceValue(a.findIneligible)
		a.nodes = sync.OnceValue(a.makeUpNodes)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("prepare the allocator: %w", err)
	}
	a.state = gatherState(snap.Claims, a.features.ConsumableCapacity)
	switch {
	case !a.FeatureEnabled(gateExtendedResource):
	case sibling != nil && sibling.classOf != nil && sameList(sibling.snap.Classes, snap.Classes):
		a.classOf = sibling.classOf
	default:
		a.classOf = extendedresourcecache.NewExtendedResourceCache(klog.Logger{})
		for _, class := range snap.Classes {
			a.classOf.OnAdd(class, true)
		}
	}
	a.usage = sync.OnceValue(a.sumUsage)
	a.placed = sync.OnceValue(a.placedPods)
	a.extended = sync.OnceValue(a.indexExtendedClaims)
	return a, nil
}

// publishes reports whether pools and devices are the same for another
// allocator: the same lists of slices, taint rules and nodes, looked at with the
// same features.
func (a *Allocator) publishes(other *Allocator) bool {
	return a.features == other.features && a.taintRulesEnabled() == other.taintRulesEnabled() &&
		sameList(a.snap.Slices, other.snap.Slices) && sameList(a.snap.TaintRules, other.snap.TaintRules) &&
		sameList(a.snap.Nodes, other.snap.Nodes) && slices.Equal(a.snap.Gaps, other.snap.Gaps)
}

// sameList reports whether two lists are one and the same, as in snapshots that
// share what is not touched.
func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
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
