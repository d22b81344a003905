// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selector knows the meaning of a CEL selector and its result for a device: which
// values it reads, its parts and their outcomes, its cost, and how to write it so that it
// requires less or does not fail.
//
// Expressions are compiled and run by the library that the allocator uses
// (k8s.io/dynamic-resource-allocation/cel); this package only remembers results and takes
// expressions apart. Devices that agree in all values that an expression reads cost one
// evaluation. It knows devices and their drivers, and nothing of claims, classes or
// clusters: its callers know why a result matters. It imports nothing of this module;
// pkg/cluster and the packages above may import it, and get an [Evaluator] from the feature
// gates there. Only this package and pkg/snapshot/redact import github.com/google/cel-go.
package selector
