// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast says what becomes of pods: how many more fit, in which order those that
// wait are placed, and what a change means for those that run. The allocator decides about
// each pod, with all that others have got before.
//
// It stands on pkg/explain, and draws nothing.
package forecast
