// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package computedomain knows how the claims of NVIDIA's compute domain driver name a
// ComputeDomain, and finds it in a snapshot: its status, its nodes with their cliques, the
// pods of its daemons. [Configs] reads the configuration of a claim, [Find] finds a domain.
//
// It decides nothing: pkg/lifecycle says what a pod waits for. It imports pkg/snapshot,
// pkg/api/v1alpha1 and pkg/english alone, and every package above those may import it.
package computedomain
