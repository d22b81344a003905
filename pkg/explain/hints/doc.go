// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hints looks for other facts that may matter to an explanation: a driver that does
// not run on a node, a queue that holds the pod back, slices that are missing,
// configuration that nobody reads. A hint changes no verdict. It has its evidence, as
// reasons have.
//
// [Add] and [AddOfConfig] are asked last, with the finished explanation. pkg/explain and
// the packages below it may import it.
package hints
