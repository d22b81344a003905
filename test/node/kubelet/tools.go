// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package kubelet pins the kubelet that the tests run.
package kubelet

import _ "k8s.io/kubernetes/cmd/kubelet"
