// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster has the facts of a snapshot that decide what can be allocated:
// pools and devices as a node sees them, who has which device, what partitions
// leave of their pools, taints and whom they evict, the claims of a pod, and which
// nodes a pod can use. Each is a type of its own; [Cluster] has them all. [BehaviorChanges]
// is the table of what kube-scheduler does in some releases and not in others, with the same
// feature gates.
//
// [Cluster.Amended] gives the facts of another snapshot, and is what sequences of
// changes are decided with: gangs, queues, plans, evictions. They are those that [New]
// finds, and the cluster before stays as it is, so that one can go back to it or on
// from it twice. What claims and pods that differ are about is worked out again:
// their devices, the pools of those, their nodes. All else is shared, so that the cost
// of a step grows with what changed in it. Only pointers of claims and pods are
// compared one by one, which is a fraction of a millisecond for a large cluster.
//
// It looks at things as kube-scheduler and its allocator do, but never asks
// whether claims fit: that is pkg/allocator's. It talks to no cluster, never
// changes an object of the snapshot and does not explain. Selectors are evaluated
// by pkg/allocator/selector, set up here to see devices as the allocator does. All
// packages above pkg/snapshot may import it.
package cluster
