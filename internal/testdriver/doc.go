// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testdriver is a DRA driver for tests: the upstream kubeletplugin helper
// with devices that exist only in name. It needs no kubelet and no cluster.
package testdriver
