// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan knows what becomes of all pods that wait for devices, one after another
// in the order of the scheduling queue: who gets what, who waits behind whom, and who
// never fits. The same queue under other conditions is a plan of another state.
//
// Whether pods fit, and in which order they are decided, is asked of pkg/explain. The
// package prints nothing; pkg/commands imports it.
package plan
