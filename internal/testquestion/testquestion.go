// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testquestion asks about the claims of a test's cluster, up to the point
// where a package below pkg/explain takes over. It knows no answers. Only the tests
// of those packages import it.
package testquestion

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Of asks about a pod with its claims, or, if it is nil, about all claims that
// are not allocated. All nodes that are suitable for the pod are candidates.
func Of(t testing.TB, snap *snapshot.Snapshot, pod *corev1.Pod) *eligibility.Question {
	t.Helper()
	alloc := Allocator(t, snap)
	var claims []cluster.PodClaim
	if pod != nil {
		claims = alloc.Facts.Claims.OfPod(pod)
	} else {
		for _, claim := range snap.Claims {
			if claim.Status.Allocation == nil {
				claims = append(claims, cluster.PodClaim{Claim: cluster.Defaulted(claim)})
			}
		}
	}
	q := eligibility.NewQuestion(alloc.Facts, pod, claims)
	eligibility.ListWaiting(q)
	q.Reach.Pools = map[string][]*cluster.NodePool{}
	nodes, _ := alloc.Facts.Nodes.All()
	for _, node := range nodes {
		// A node whose pools cannot be determined has none.
		q.Reach.Pools[node.Name], _ = alloc.Facts.Pools.For(node)
		if len(eligibility.Misfits(q, node)) == 0 {
			q.Reach.Candidates = append(q.Reach.Candidates, node)
		}
	}
	for i := range q.Claims {
		q.BeginFunnels(t.Context(), &q.Claims[i])
		if err := q.FinishFunnels(t.Context(), &q.Claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

// Allocator returns the allocator of a snapshot.
func Allocator(t testing.TB, snap *snapshot.Snapshot) *allocator.Allocator {
	t.Helper()
	c := cluster.New(snap)
	return allocator.Of(c)
}
