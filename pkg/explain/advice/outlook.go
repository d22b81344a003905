// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// OutlookCase is a verdict that nothing fits.
type OutlookCase struct {
	*verdict.Verdict
	// Nodes counts the nodes of the question; OneNode is set for a question about one node.
	Nodes   int
	OneNode bool
	// Members are the pods of the workload that is asked about: they keep what they have,
	// since its controller creates again those that leave.
	Members []*corev1.Pod
	// Near are nodes that come close, by name: they are tried first.
	Near []string
	// Contents tell which nodes are equivalent, Confirmer asks about what-if clusters.
	Contents  *verdict.NodeContents
	Confirmer *verdict.Confirmer
	// begun is the result of Begin.
	begun func() (*beginning, error)
}

// amended is the question about a cluster in which claims are released.
type amended struct {
	*OutlookCase
	q *eligibility.Question
	// contents are nil until they are asked for.
	contents *verdict.NodeContents
}

// beginning has the users of claims, and the question about a cluster in which all claims
// are released, see [Case.released].
type beginning struct {
	users    consumersOfClaims
	released *amended
}

// Begin begins to decide the outlook in the background: the part that depends neither on
// Near nor on the memory of nodes and selectors.
func (c *OutlookCase) Begin() {
	c.begun = sync.OnceValues(func() (*beginning, error) {
		users := consumers(c.Cluster.Snapshot)
		released, err := c.released(users, c.Members)
		return &beginning{users, released}, err
	})
	go func() {
		// Who asks for it gets the error.
		_, _ = c.begun()
	}()
}

// released returns the question after all claims were released, except the claims of some
// pods, and the pods that used them are gone; nil if it cannot be asked.
func (c *OutlookCase) released(users consumersOfClaims, keep []*corev1.Pod) (*amended, error) {
	kept := func(pod *corev1.Pod) bool { return slices.Contains(keep, pod) }
	return c.after(func(pod *corev1.Pod) bool { return users.has(pod) && !c.isOwn(pod) && !kept(pod) },
		func(claim *resourceapi.ResourceClaim) bool { return !users.any(claim, kept) })
}

// after returns the question about the cluster after pods have left and claims were
// released; nil if it cannot be asked.
func (c *OutlookCase) after(leaves func(*corev1.Pod) bool, released func(*resourceapi.ResourceClaim) bool) (*amended, error) {
	return c.about(whatif.Leave(c.Cluster.Snapshot, leaves, func(claim *resourceapi.ResourceClaim, _ *resourceapi.DeviceRequestAllocationResult) bool {
		return released(claim)
	}))
}

func (c *OutlookCase) about(snap *snapshot.Snapshot) (*amended, error) {
	after := c.Cluster.Amended(snap)
	q, err := c.Again(verdict.WhatIf{Cluster: after, FindAgain: true})
	if err != nil || q == nil {
		return nil, err
	}
	return &amended{OutlookCase: c, q: q}, nil
}

// isOwn reports whether a pod belongs to the target.
func (c *OutlookCase) isOwn(pod *corev1.Pod) bool {
	return c.Pod != nil && pod.Namespace == c.Pod.Namespace && pod.Name == c.Pod.Name
}

// kept reports whether pods of the workload that is asked about have devices.
func (c *OutlookCase) kept() bool {
	users := consumers(c.Cluster.Snapshot)
	return slices.ContainsFunc(c.Members, users.has)
}

// consumersOfClaims are the pods for which claims are reserved.
type consumersOfClaims struct {
	snap *snapshot.Snapshot
	pods map[*corev1.Pod]bool
}

func consumers(snap *snapshot.Snapshot) consumersOfClaims {
	users := consumersOfClaims{snap, map[*corev1.Pod]bool{}}
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.ReservedFor {
			if pod := users.pod(claim, &claim.Status.ReservedFor[i]); pod != nil {
				users.pods[pod] = true
			}
		}
	}
	return users
}

// pod returns a consumer, nil if that is no pod or not known.
func (u consumersOfClaims) pod(claim *resourceapi.ResourceClaim, c *resourceapi.ResourceClaimConsumerReference) *corev1.Pod {
	if c.APIGroup != "" || c.Resource != "pods" {
		return nil
	}
	pod := u.snap.Pod(claim.Namespace, c.Name)
	if pod == nil || pod.UID != c.UID {
		return nil
	}
	return pod
}

func (u consumersOfClaims) has(pod *corev1.Pod) bool { return u.pods[pod] }

// any reports whether one of the pods for which a claim is reserved is such a pod.
func (u consumersOfClaims) any(claim *resourceapi.ResourceClaim, such func(*corev1.Pod) bool) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourceapi.ResourceClaimConsumerReference) bool {
		pod := u.pod(claim, &consumer)
		return pod != nil && such(pod)
	})
}

// only lists the allocated claims that are reserved for such pods and for nobody
// else, and reports whether others may be among them.
func (u consumersOfClaims) only(such func(*corev1.Pod) bool) (claims map[*resourceapi.ResourceClaim]bool, unknown bool) {
	claims = map[*resourceapi.ResourceClaim]bool{}
	for _, claim := range u.snap.Claims {
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) == 0 {
			continue
		}
		all, known := true, true
		for i := range claim.Status.ReservedFor {
			pod := u.pod(claim, &claim.Status.ReservedFor[i])
			known = known && pod != nil
			all = all && pod != nil && such(pod)
		}
		if all {
			claims[claim] = true
		}
		unknown = unknown || !known
	}
	return claims, unknown
}
