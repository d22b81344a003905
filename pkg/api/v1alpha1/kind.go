// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Kinds of objects with explanations, besides workloads.
const (
	KindClaim    = "ResourceClaim"
	KindTemplate = "ResourceClaimTemplate"
	KindPod      = "Pod"
	KindNode     = "Node"
	KindPodGroup = "PodGroup"
	// KindCompositePodGroup is the kind of a group of PodGroups.
	KindCompositePodGroup = "CompositePodGroup"
	KindDevice            = "Device"
	KindAPIServer         = "APIServer"
)
