// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler as processes on loopback, so that
// tests can compare what the program says with what Kubernetes does.
//
// As a rule there are no kubelets: a Node is an object that a test creates, and
// a pod that was bound to it stays Pending. The node lifecycle controller is off,
// so that such nodes keep the conditions that the test gave them.
//
// For tests that need more than the API, [ControlPlane.StartNode] adds a real
// node: a kubelet with containerd, on this machine. It takes root and Linux.
//
// Only tests import this package.
package controlplane
