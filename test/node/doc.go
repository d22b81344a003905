// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node tests the program on a real node: a kubelet and a containerd on
// this machine, a driver on the upstream kubeletplugin helper, and pods that
// run. `make test-node` runs it, as root on Linux; otherwise its tests are
// skipped.
package node
