// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocator wraps the structured allocator of kube-scheduler: fed with the
// facts of a snapshot ([cluster.Cluster]) as the scheduler
// feeds it with its caches, it gives the verdict for a node, or for many. A [Budget]
// bounds how far it searches.
//
// This is the only package that imports
// k8s.io/dynamic-resource-allocation/structured. It talks to no cluster, never
// changes an object of the snapshot and does not explain: the reason of
// a verdict is pkg/explain's, facts alone are pkg/cluster's.
package allocator
