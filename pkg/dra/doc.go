// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dra answers questions of programs about devices: why pods, claims and workloads do
// not get them, which causes are behind pods that do not run, and how many copies of a
// workload fit, as kubectl dra does. [Load] and [Read] make a [Cluster], which answers.
//
// The answers are the objects that "-o json" prints, of package
// [github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1].
//
// The functions, methods and error types of this package are stable: they keep their
// signatures and their meaning within a major version of the module. In the objects, fields and
// reason codes are only added while their apiVersion stays the same; the sentences in them may
// change. All other packages of the module are the program's own and change without notice.
//
// Errors that a caller can decide by have a type here: pointers to it are found by [errors.As].
// All others describe what failed; if the context is done, they wrap its error.
//
// The package decides and computes nothing itself. It imports what answers, and nothing
// imports it.
package dra
