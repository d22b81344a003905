// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"time"

	resourceapi "k8s.io/api/resource/v1"
)

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
