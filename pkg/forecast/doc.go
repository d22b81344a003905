// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast says what becomes of pods: how many more fit, in which order those that
// wait are placed, and what a change means for those that run. The allocator decides about
// each pod, with all that others have got before. [FindSharing] finds in which ways pods can share
// the devices of a class, with a manifest for each way that the allocator has decided about.
//
// It stands on pkg/explain and pkg/inventory, and draws nothing.
package forecast
