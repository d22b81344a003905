// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocator is the structured allocator of kube-scheduler behind one
// small door: fed with the facts of a snapshot ([cluster.Cluster]) as the scheduler
// feeds it with its caches, it gives the verdict for a node, or for many.
//
// This is the only package that imports
// k8s.io/dynamic-resource-allocation/structured. It talks to no cluster, never
// changes an object of the snapshot and does not explain: whoever wants to
// know the reason of a verdict asks pkg/explain. Who needs facts alone takes
// pkg/cluster.
package allocator
