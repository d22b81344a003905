// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocator wraps the structured allocator of kube-scheduler: fed with the
// facts of a cluster ([cluster.Cluster]) as the scheduler feeds it with its caches, it gives
// the verdict for a node, or for many ([Of]). A [Budget] bounds how far it searches. Where an
// earlier patch release decides otherwise than the library, [Allocate] searches as the release
// does. [Place], [Attempt] and [Victims] say what a pod gets in a cluster, after others were
// placed or have left.
//
// This is the only package that imports
// k8s.io/dynamic-resource-allocation/structured. It talks to no cluster, never
// changes an object of the snapshot and does not explain: the reason of
// a verdict is pkg/explain's, facts alone are pkg/cluster's.
package allocator
