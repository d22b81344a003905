// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestEach redacts two states of a cluster; the second state has one more node, which sorts first. Both
// have the same pseudonyms, in the order of all names, and share the same objects as before.
func TestEach(t *testing.T) {
	one := fleet.Random(3).Snapshot
	other := *one
	added := one.Nodes[0].DeepCopy()
	added.Name, added.UID = "a-node", "a-node"
	other.Nodes = append(slices.Clone(one.Nodes), added)
	other.Sort()
	var got []*snapshot.Snapshot
	for s, err := range Each(func(yield func(*snapshot.Snapshot, error) bool) {
		_ = yield(one, nil) && yield(&other, nil)
	}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	names := func(s *snapshot.Snapshot) []string {
		var list []string
		for _, node := range s.Nodes {
			list = append(list, node.Name)
		}
		return list
	}
	first, second := names(got[0]), names(got[1])
	if len(second) != len(first)+1 || !slices.Equal(first, second[1:]) || !slices.IsSorted(second) {
		t.Errorf("nodes %v, then %v", first, second)
	}
	if got[0].Nodes[0] != got[1].Nodes[1] || got[0].Pods[0] != got[1].Pods[0] || got[0].Pods[0] == one.Pods[0] {
		t.Error("the states do not share what they shared, or share it with the cluster")
	}
}
