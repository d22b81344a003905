// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selector knows what a CEL selector says and what it makes of a
// device: which values it reads, of which parts it is made, how each part went,
// what it costs, and how it would be written to ask for less or not to fail.
//
// Expressions are compiled and run by the library that the allocator uses
// (k8s.io/dynamic-resource-allocation/cel); this package only remembers results
// and takes expressions apart. Devices that agree in all that an expression
// reads cost one evaluation. It knows devices by their driver and what the API
// says of them, and nothing of claims, classes or clusters: why a result
// matters is for others to say. It imports nothing of this module;
// pkg/cluster and the packages above may import it, and get an
// [Evaluator] from the feature gates there. Only this package and
// pkg/snapshot/redact import github.com/google/cel-go.
package selector
