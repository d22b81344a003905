// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// ErrInvalidPool means that nothing fits, and that a pool of the node is invalid.
var ErrInvalidPool = errors.New("there are invalid resource pools")

// ReleasePanicError means that the allocator panics, and with it the scheduler.
type ReleasePanicError struct {
	// Because is the bug.
	Because cluster.Behavior
	text    string
}

func (e *ReleasePanicError) Error() string { return e.text }

// Question is a question to the allocator.
type Question struct {
	Facts  *cluster.Cluster
	Node   *corev1.Node
	Pools  []*cluster.NodePool
	Claims []*resourceapi.ResourceClaim
	// Matches evaluates an expression for a device.
	Matches func(ctx context.Context, expression string, device *cluster.Device) (bool, error)
	// Behaves reports what the allocator does, see [cluster.BehaviorChanges].
	Behaves func(cluster.Behavior) bool
}

// request is one request, or one alternative of a prioritized list.
type request struct {
	*cluster.Request
	class *resourceapi.DeviceClass
	// count is how many devices it needs. all has the devices of a request for all.
	count int
	all   []int
}

// choice is a request with its alternatives.
type choice struct {
	prioritized  bool
	alternatives []request
}

// matchKey is the key for the allocator's memory of a device and an alternative.
type matchKey struct {
	claim, choice, alternative, device int
}

func name(claim *resourceapi.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }
