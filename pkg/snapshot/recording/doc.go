// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording knows the file that 'kubectl dra record' writes: the states of a cluster, one
// after the other. It never asks a cluster and never explains anything.
package recording
