// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package kubelet knows what the kubelet of a node reports about its pods: the
// claims and devices that it has given to each container, by its PodResources
// API. It holds that against what the cluster says.
//
// It only asks, within a time and up to a size, and prints nothing.
// pkg/nodeprobe and pkg/commands/nodeprobe may import it.
package kubelet
