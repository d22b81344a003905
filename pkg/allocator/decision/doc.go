// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides for one node whether any assignment of devices to requests
// exists.
//
// The answer is exact. Where the allocator of kube-scheduler tries every order of every
// device, this package looks at what makes devices different: equal devices are counted
// instead of permuted, devices that share no limit are solved apart and put together
// afterwards, and what is known to be impossible is not tried again. So "25 of 24 equal
// devices" is decided at once.
//
// The rules are from k8s.io/dynamic-resource-allocation/structured (v0.37.2,
// experimental channel): exclusive, shared and admin access, counters (KEP-4815),
// consumable capacity (KEP-5075), compatibility groups, prioritized lists (KEP-4816), match
// and distinct constraints with scalar and list values, and the limit of devices in one
// claim. What depends on a device and a request alone (selectors, taints, features) is
// decided by the caller, who leaves such candidates out.
//
// It never reads a clock, never keeps state between calls, never changes what it is given
// and never guesses: when the context ends first, the answer is Unknown. It imports nothing
// of this module; pkg/allocator/verdict, which puts claims into numbers, may import it.
package decision
