// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestOrderOfNodes asks about the nodes of a cluster forward and backward. What devices in
// use leave of a pool with compatibility groups differs between these nodes, and upstream
// keeps what it was for the first that it is asked about.
func TestOrderOfNodes(t *testing.T) {
	c := fleet.Random(20273591)
	claim := c.Claims()[0]
	exactly := claim.Spec.Devices.Requests[0].Exactly
	exactly.Selectors = exactly.Selectors[:2]
	outcomes := func(nodes []*corev1.Node) map[string]allocator.Outcome {
		facts := cluster.New(c.Snapshot)
		of := map[string]allocator.Outcome{}
		for _, node := range nodes {
			of[node.Name] = allocator.Of(facts).Check(t.Context(), node, c.Claims()[:1]).Outcome
		}
		return of
	}
	forward := slices.Clone(c.Snapshot.Nodes)
	backward := slices.Clone(forward)
	slices.Reverse(backward)
	got, want := outcomes(backward), outcomes(forward)
	answer, err := Explain(t.Context(), c.Snapshot, Options{Object: api.Ref(api.KindClaim, claim.Namespace, claim.Name)})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(answer.Assumptions, func(text string) bool {
		return strings.HasPrefix(text, "each node is evaluated alone: ")
	}) {
		t.Errorf("nothing says that the order of the nodes matters: %q", answer.Assumptions)
	}
	if !maps.Equal(got, want) || len(want) < 2 || want["n2"] != allocator.Fits {
		t.Errorf("forward %v, backward %v", want, got)
	}
}
