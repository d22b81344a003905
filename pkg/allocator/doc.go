// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocator is the structured allocator of kube-scheduler behind one
// small door: fed with a snapshot as the scheduler feeds it with its caches,
// it gives the verdict for a node and shows the state that the verdict is
// based on (pools, devices, holders, counters, claims of a pod, node fit).
//
// Selectors are evaluated by pkg/allocator/selector, set up here to see devices
// as the allocator does. This is the only package that imports
// k8s.io/dynamic-resource-allocation/structured. It talks to no cluster, never
// changes an object of the snapshot and does not explain: whoever wants to
// know the reason of a verdict asks pkg/explain. Packages above it may import
// it: explain, inventory, doctor, render, tui and commands.
package allocator
