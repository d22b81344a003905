// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dra gives programs the answers of kubectl dra: why pods, claims and workloads do not
// get their devices, what is wrong in a cluster, and how many copies of something fit. [Load]
// and [Read] are the way in.
//
// The answers are the objects that "-o json" prints, of package
// [github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1].
//
// What is stable: the functions and methods of this package, and the error types that they
// name, keep their meaning and their signatures as long as the version of the module says so
// (Semantic Versioning). In the objects, fields and reason codes are only added while the
// version in their apiVersion stays the same; the sentences in them may change. All other
// packages of the module are the program's own and change without notice.
//
// Errors that a caller can decide by have a type here, which [errors.As] finds. All others
// describe what failed; after a cancelled context, they wrap its error.
//
// The package decides and computes nothing itself. It imports what answers, and nothing
// imports it.
package dra
