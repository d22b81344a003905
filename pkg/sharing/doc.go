// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sharing finds in which ways pods can share the devices of a class, with a manifest for
// each way that the allocator has decided about. It stands above pkg/inventory and pkg/forecast; it
// reads nothing and prints nothing.
package sharing
