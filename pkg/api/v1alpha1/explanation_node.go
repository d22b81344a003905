// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// NodeExplanation describes one node that was asked about.
type NodeExplanation struct {
	Name string `json:"name"`
	// Misfits are all conditions that keep the pod away, whatever devices there are.
	Misfits []NodeMisfit `json:"misfits,omitempty"`
	// Pools are the pools that the node can reach, in the allocator's order.
	Pools []ReachablePool `json:"pools,omitempty"`
	// AllocatorVerdict is the allocator's verdict without the misfits, empty if all claims
	// have their devices. Code and Message give the reason if devices are missing.
	AllocatorVerdict Verdict `json:"allocatorVerdict,omitempty"`
	Code             Code    `json:"code,omitempty"`
	Message          string  `json:"message,omitempty"`
}

// NodeMisfit is a condition that keeps a pod away from a node.
type NodeMisfit struct {
	Code     Code     `json:"code"`
	Message  string   `json:"message"`
	Evidence Evidence `json:"evidence"`
}

// ReachablePool is a pool as the allocator sees it from one node.
type ReachablePool struct {
	Driver string `json:"driver"`
	Name   string `json:"name"`
	// Generation is the generation that counts for the node, 0 if none does.
	Generation int64 `json:"generation"`
	// Slices counts the published slices of the newest generation, ExpectedSlices the
	// expected ones.
	Slices         int   `json:"slices"`
	ExpectedSlices int64 `json:"expectedSlices"`
	// Devices counts the devices for the node.
	Devices int `json:"devices"`
	// Usable reports whether the allocator takes devices from the pool.
	Usable bool `json:"usable"`
	// Code and Message give the reason if the allocator does not use the pool, or leaves
	// out a part of it.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Evidence proves it.
	Evidence *Evidence `json:"evidence,omitempty"`
}
