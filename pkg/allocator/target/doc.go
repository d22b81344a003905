// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target knows what a target comes down to: a claim, a pod, a workload or
// a template is looked up in a snapshot, with the pod that it stands for and the
// claims that are to be allocated together. What does not exist is an [Error] that
// says what does.
//
// It asks nobody what fits.
package target
