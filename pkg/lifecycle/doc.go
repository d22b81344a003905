// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle knows the stages of a pod with claims, from the generation of its
// claims to their cleanup. [Of] finds the first unfinished stage, and what keeps the pod there:
// events, conditions, the state of its claims, of the node, of the driver and of ComputeDomains.
// Each finding has its evidence. [Stages] does the same for all pods of a cluster.
//
// It asks pkg/cluster who has a device and for whom a claim is reserved, never what fits,
// and it prints nothing. pkg/explain and every package above that may import it.
package lifecycle
