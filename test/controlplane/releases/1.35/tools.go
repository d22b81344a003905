// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package kubernetes pins the Kubernetes components that the tests run as
// Kubernetes 1.35.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
