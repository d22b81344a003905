// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package funnel

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Question is what one explanation is about: a cluster, and the claims that are
// to be allocated in it together.
type Question struct {
	Snap      *snapshot.Snapshot
	Cluster   *Cluster
	Selectors *selector.Evaluator
	Catalog   *Catalog
	// Pod is the one whose claims these are, nil if no pod uses them. PodClaims are
	// all that it uses, also those that are allocated.
	Pod       *corev1.Pod
	PodClaims []allocator.PodClaim
	// Claims are those that need devices, in the order of the pod.
	Claims []Claim
}

// Claim is a claim that is to be allocated.
type Claim struct {
	Claim *resourceapi.ResourceClaim
	// Index is that in [Question.PodClaims].
	Index int
	// Funnels has one for each alternative of each request.
	Funnels [][]*Funnel
}
