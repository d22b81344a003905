// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package earlier searches for devices as the structured allocators of earlier patch
// releases do, with their bugs: a candidate that is given up may keep what was reserved for
// it, and counters are counted otherwise. pkg/behavior says which of these a release
// does. Without any, the result equals the result of the library.
//
// It knows pools, devices and claims, and not what 1.37 added: compatibility groups, derived
// attributes and lists in constraints. It never explains. Only pkg/allocator and
// test/allocators import it; the latter compares it with the allocators of all patch releases.
package earlier
