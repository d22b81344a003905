// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// The allocator tries all combinations, and their number can be beyond all
// measure: 25 devices of 24 take minutes. Where it may be so and counting
// proves that nothing fits, it is not waited for.
const (
	// longSearch is the number of combinations, as a power of two, from which
	// on a node is decided by counting first.
	longSearch = 17
	// countingSteps bounds the counting for one node: a second or two.
	countingSteps = 10_000_000
)

// IsHard reports whether the allocator may search a node for long and find nothing.
func IsHard(ctx context.Context, q *eligibility.Question, node *corev1.Node) bool {
	if combinations(q, node.Name) < longSearch {
		return false
	}
	ctx, budget := allocator.WithBudget(ctx, countingSteps)
	defer budget.End()
	return CountingAnswer(ctx, q, node) == decision.Infeasible && !MayFail(ctx, q, node)
}

// TooFewDevices reports whether a node has fewer devices for some request than it asks for, each of
// which can be allocated once. It is false where the allocator might end with an error, or
// would take long to find out.
func TooFewDevices(ctx context.Context, q *eligibility.Question, node *corev1.Node) bool {
	pools, readable := q.Reach.Pools[node.Name]
	if !readable || slices.ContainsFunc(pools, mayEndOtherwise) || differsFromCounting(q, node) {
		return false
	}
	short := false
	for _, claim := range q.Claims {
		if q.PodClaims[claim.Index].ExtendedResources {
			return false
		}
		for _, alternatives := range claim.Funnels {
			// What is wrong with a pool, and too many devices, is an error for these.
			if slices.ContainsFunc(alternatives, func(f *eligibility.Funnel) bool { return f.Request.All() }) {
				return false
			}
			short = short || !slices.ContainsFunc(alternatives, func(f *eligibility.Funnel) bool {
				return f.Request.AdminAccess || int64(f.Eligible[node.Name]) >= f.Request.Count
			})
		}
	}
	return short && combinations(q, node.Name) < longSearch && !MayFail(ctx, q, node)
}

// mayEndOtherwise reports whether the allocator may end with an error where it finds nothing in
// a pool, or may allocate a device of it more than once.
func mayEndOtherwise(pool *cluster.NodePool) bool {
	return pool.Invalid != "" || slices.ContainsFunc(pool.Devices, func(d cluster.Device) bool { return ptr.Deref(d.AllowMultipleAllocations, false) })
}

// IsHardAlone reports whether the node is hard, like [IsHard], where nothing is accounted
// for yet. Most nodes do not even have enough devices to be worth it.
func IsHardAlone(ctx context.Context, q *eligibility.Question, node *corev1.Node) bool {
	devices := 0
	for _, pool := range q.Reach.Pools[node.Name] {
		devices += len(pool.Devices)
	}
	claims, err := q.ClaimsFor(node)
	if err != nil || mostCombinations(claims, devices) < longSearch {
		return false
	}
	one, err := QuestionOnNode(ctx, q, q.Cluster, node, claims)
	return err == nil && IsHard(ctx, one, node)
}

// combinations estimates, as a power of two, how many sets of devices the
// allocator tries on a node before it gives up.
func combinations(q *eligibility.Question, node string) float64 {
	bits := 0.0
	for _, claim := range q.Claims {
		for _, alternatives := range claim.Funnels {
			most := 0.0
			for _, f := range alternatives {
				if f.Request.All() {
					continue
				}
				most = max(most, combinationsOf(f.Eligible[node], f.Request.Count))
			}
			bits += most
		}
	}
	return bits
}

// mostCombinations returns the most that combinations can be where a node has so many
// devices.
func mostCombinations(claims []*resourceapi.ResourceClaim, devices int) float64 {
	bits := 0.0
	for _, claim := range claims {
		for _, alternatives := range cluster.Requests(claim) {
			most := 0.0
			for _, r := range alternatives {
				if !r.All() {
					most = max(most, combinationsOf(devices, r.Count))
				}
			}
			bits += most
		}
	}
	return bits
}

// combinationsOf returns the binary logarithm of the number of sets of at most k of n:
// smaller sets are tried on the way to a set of k.
func combinationsOf(n int, k int64) float64 {
	sets, ofSize := 1.0, 1.0
	for size := 1; size <= n && int64(size) <= k && !math.IsInf(sets, 1); size++ {
		ofSize *= float64(n-size+1) / float64(size)
		sets += ofSize
	}
	return math.Log2(sets)
}
