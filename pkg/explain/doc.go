// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain turns a target (a claim, a pod, a workload, a template) into
// an [*api.Explanation]: the verdict of the scheduler's allocator and the evidence
// for it.
// [UseOfDevice] and [UseOfNode] ask the same question from the other side: what becomes of
// a device, which requests could use it, and why they do not get it.
//
// The verdict always comes from pkg/allocator. What this package computes on
// top, device by device, explains that verdict and never contradicts it; where
// something decisive cannot be known, the verdict is Undetermined. It prints
// nothing and talks to no cluster. pkg/tui and pkg/commands may import it.
package explain
