// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// stepsPerCheck are the steps of a check besides the search.
const stepsPerCheck = 500

// Check lets the allocator look for devices on one node. The claims are those
// that have no allocation yet, in the order of the pod; the caller makes sure
// that they have the API server's defaults, see [cluster.Defaulted].
func (a *Allocator) Check(ctx context.Context, node *corev1.Node, claims []*resourceapi.ResourceClaim) NodeVerdict {
	start := time.Now()
	verdict := a.byRelease(a.check(ctx, node, claims, a.Differs(node, claims)))
	verdict.Duration = time.Since(start)
	return verdict
}

// check asks the library or, where the release of the cluster may decide otherwise, searches
// as the release does.
func (a *Allocator) check(ctx context.Context, node *corev1.Node, claims []*resourceapi.ResourceClaim, differs bool) NodeVerdict {
	if Counted(ctx, stepsPerCheck).Err() != nil {
		return stopped(ctx, node)
	}
	if len(claims) == 0 {
		return NodeVerdict{Outcome: Fits}
	}
	if err := a.unending(ctx, node, claims); err != nil {
		return NodeVerdict{Outcome: TimedOut, Err: fmt.Errorf("check node %s: %w", node.Name, err)}
	}
	upstream, err := a.upstreamFor(ctx, node)
	if err != nil {
		return NodeVerdict{Outcome: Failed, Err: err}
	}
	// Upstream logs through the context's logger.
	limited := klog.NewContext(ctx, klog.Logger{})
	if a.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(limited, a.timeout)
		defer cancel()
	}
	limited = Counted(limited, a.devicesOf(node))
	allocations, err := a.allocate(limited, claims, func() ([]resourceapi.AllocationResult, error) {
		if differs {
			return a.asEarlier(limited, node, claims, a.Facts.Behaves)
		}
		return upstream.Allocate(limited, node, claims)
	})
	var panics *ReleasePanicError
	// What follows is the order of the scheduler's Filter, except that a done
	// context of the caller comes first: it is not the scheduler's limit.
	switch {
	case err != nil && ctx.Err() != nil:
		return stopped(ctx, node)
	case err != nil && limited.Err() != nil:
		return NodeVerdict{Outcome: TimedOut, Err: fmt.Errorf("check node %s: no answer within %s: %w", node.Name, a.timeout, limited.Err())}
	case errors.Is(err, structured.ErrFailedAllocationOnNode), errors.Is(err, ErrInvalidPool):
		return NodeVerdict{Outcome: NodeError, Err: err}
	case err != nil && differs && !errors.As(err, &panics):
		if usual := a.check(ctx, node, claims, false); usual.Outcome == Failed {
			// It has more to say.
			return usual
		}
		return NodeVerdict{Outcome: Failed, Err: err}
	case err != nil:
		return NodeVerdict{Outcome: Failed, Err: err}
	case len(allocations) != len(claims):
		return NodeVerdict{Outcome: DoesNotFit}
	default:
		return NodeVerdict{Outcome: Fits, Allocations: allocations}
	}
}

// devicesOf counts the devices that a search on a node may try.
func (a *Allocator) devicesOf(node *corev1.Node) int64 {
	pools, err := a.Facts.Pools.For(node)
	if err != nil {
		return 1
	}
	devices := 0
	for _, pool := range pools {
		devices += len(pool.Devices)
	}
	return int64(max(1, devices))
}

// stopped returns the verdict for a node where the caller's context is done.
func stopped(ctx context.Context, node *corev1.Node) NodeVerdict {
	if errors.Is(context.Cause(ctx), ErrBudgetSpent) {
		return NodeVerdict{Outcome: GivenUp, Err: fmt.Errorf("check node %s: %w", node.Name, ErrBudgetSpent)}
	}
	return NodeVerdict{Outcome: Cancelled, Err: fmt.Errorf("check node %s: %w", node.Name, ctx.Err())}
}

// upstreamFor returns an allocator that knows all pools which concern the
// node. It gives the same answer as a check with all slices, in less time:
//
//   - GatherPools, the only part of the allocator that looks at slices, treats
//     each pool for itself. The check for completeness, too, looks only at
//     slices of the same driver and pool.
//   - A pool without a slice that concerns the node does not make it into the
//     result, so it makes no difference whether its slices are there. The
//     others are passed with all their slices, of all generations, whatever
//     node they are for, in the same order.
//   - All that follows (All mode, the search, counters, compatibility groups)
//     works with the result of GatherPools.
//   - GatherPools looks at the node selectors of all slices and fails if one
//     cannot be parsed. If this happens here, all slices are passed, and
//     upstream reports it.
//   - In the stable channel, every pool with counter sets concerns every node.
//     Without devices for the node, it matters only by being incomplete or
//     invalid, and a second pool like that changes nothing. One of each kind
//     is passed, see [cluster.Pools.For].
func (a *Allocator) upstreamFor(ctx context.Context, node *corev1.Node) (structured.Allocator, error) {
	pools, err := a.concerning(node)
	if err != nil {
		pools = byIndex(a.Facts.Pools.All())
	}
	var key strings.Builder
	for _, pool := range pools {
		key.WriteString(strconv.Itoa(pool.Index))
		key.WriteByte(',')
		if a.Facts.Partitions.DependsOnNode(pool) {
			// The allocator keeps what devices in use leave of such a pool from the first
			// node that it is asked about (compatibilityGroupsBaseline). Which node that is
			// must not depend on what was asked before.
			key.WriteString(node.Name)
		}
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if upstream, ok := a.upstream[key.String()]; ok {
		return upstream, nil
	}
	var all []*resourceapi.ResourceSlice
	for _, pool := range pools {
		all = append(all, a.Facts.Pools.SlicesOf(pool)...)
	}
	upstream, err := structured.NewAllocator(ctx, a.features, a.stateFor(pools), classLister{a.Facts.Snapshot}, all, a.celCache)
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	a.upstream[key.String()] = upstream
	return upstream, nil
}

// stateFor returns the usage of some pools. As long as less was collected than there are
// claims, only that is collected: after a small change, few nodes are asked about.
func (a *Allocator) stateFor(pools []*cluster.Pool) structured.AllocatedState {
	if a.gathered > len(a.Facts.Snapshot.Claims) {
		return a.state().of(pools)
	}
	state, devices := stateOf(a.Facts.Usage, pools, a.features.ConsumableCapacity)
	a.gathered += devices
	return state
}

// concerning returns the pools that have a slice which concerns the node,
// sorted.
func (a *Allocator) concerning(node *corev1.Node) ([]*cluster.Pool, error) {
	pools, err := a.Facts.Pools.For(node)
	if err != nil {
		return nil, err
	}
	found := make([]*cluster.Pool, 0, len(pools))
	for _, pool := range pools {
		if !pool.AllIgnored {
			found = append(found, pool.Pool)
		}
	}
	return byIndex(found), nil
}

func byIndex(pools []*cluster.Pool) []*cluster.Pool {
	slices.SortFunc(pools, func(a, b *cluster.Pool) int { return cmp.Compare(a.Index, b.Index) })
	return pools
}

// CheckAll does the same as [Allocator.Check] for several nodes, in parallel.
// The verdicts are in the order of the nodes. Like the scheduler, it stops at
// the first node, in that order, whose verdict ends the attempt; the nodes after
// it are NotTried. Steps of a [Budget] are taken in that order, too: from the node
// on that has too few of them left, all are GivenUp. An error of claimsFor is the
// NodeError of that node.
func (a *Allocator) CheckAll(ctx context.Context, nodes []*corev1.Node, claimsFor func(*corev1.Node) ([]*resourceapi.ResourceClaim, error)) []NodeVerdict {
	run := newCheckRun(ctx, len(nodes))
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(nodes)) {
		workers.Go(func() {
			for {
				i, checkCtx, ok := run.next()
				if !ok {
					return
				}
				claims, err := claimsFor(nodes[i])
				if err != nil {
					run.done(i, NodeVerdict{Outcome: NodeError, Err: err})
					continue
				}
				run.done(i, a.Check(checkCtx, nodes[i], claims))
			}
		})
	}
	workers.Wait()
	return run.result(nodes)
}

// checkRun hands out indices in order, so that all before the end of the run have been
// tried.
type checkRun struct {
	ctx context.Context
	// left is how many steps there are for all checks, taken how many the first
	// ones took of them, as far as they are done without a gap: counted.
	left, taken int64
	counted     int

	mutex    sync.Mutex
	verdicts []NodeVerdict
	// budgets are the budgets of the started checks.
	budgets []*Budget
	// end is the index after the last relevant one.
	end int
}

func newCheckRun(ctx context.Context, nodes int) *checkRun {
	r := &checkRun{ctx: ctx, left: math.MaxInt64, verdicts: make([]NodeVerdict, nodes), budgets: make([]*Budget, 0, nodes), end: nodes}
	if b := budgetOf(ctx); b != nil {
		r.left = b.left.Load()
	}
	return r
}

func (r *checkRun) next() (int, context.Context, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	i := len(r.budgets)
	if i >= r.end || r.taken > r.left {
		return 0, nil, false
	}
	// The checks before this one may take some of them still.
	ctx, budget := newBudget(r.ctx, r.left-r.taken)
	r.budgets = append(r.budgets, budget)
	return i, ctx, true
}

func (r *checkRun) done(i int, verdict NodeVerdict) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.verdicts[i] = verdict
	r.budgets[i].End()
	for r.counted < len(r.budgets) && r.budgets[r.counted].ended {
		r.taken += r.budgets[r.counted].Used()
		r.counted++
	}
	if i >= r.end || !verdict.EndsAttempt {
		return
	}
	r.end = i + 1
	for _, budget := range r.budgets[r.end:] {
		budget.cancel(nil)
	}
}

// result returns what would come of the checks one after the other.
func (r *checkRun) result(nodes []*corev1.Node) []NodeVerdict {
	var taken int64
	for i := range r.verdicts {
		switch {
		case taken > r.left:
		case i >= r.end:
			r.verdicts[i] = NodeVerdict{Outcome: NotTried}
			continue
		default:
			taken += r.budgets[i].Used()
		}
		if taken > r.left {
			r.verdicts[i] = NodeVerdict{Outcome: GivenUp, Err: fmt.Errorf("check node %s: %w", nodes[i].Name, ErrBudgetSpent)}
		}
	}
	if b := budgetOf(r.ctx); b != nil {
		b.take(min(taken, r.left+1))
	}
	return r.verdicts
}
