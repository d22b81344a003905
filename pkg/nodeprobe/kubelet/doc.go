// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package kubelet knows the kubelet's report about its pods: the claims and devices that it
// has given to each container, by its PodResources API. It compares the report with the
// cluster.
//
// It only asks, within limits of time and size, and prints nothing. pkg/nodeprobe and
// pkg/commands/nodeprobe may import it.
package kubelet
