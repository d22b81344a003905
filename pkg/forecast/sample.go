// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// sample stands for a cluster: it has the first node of each of some groups of equivalent
// nodes, and all that pods cannot use.
type sample struct {
	groups [][]*corev1.Node
	// state is made when it is needed. Names and groupOf have by the name of the first node
	// of a group the others, and all.
	state   *cluster.Cluster
	names   map[string][]string
	groupOf map[string][]*corev1.Node
}

// prepare makes the state.
func (s *sample) prepare(snap *snapshot.Snapshot, unsuitable []*corev1.Node) {
	if s.state != nil {
		return
	}
	s.names, s.groupOf = map[string][]string{}, map[string][]*corev1.Node{}
	few := append([]*corev1.Node{}, unsuitable...)
	for _, group := range s.groups {
		first := group[0]
		few, s.groupOf[first.Name] = append(few, first), group
		for _, node := range group[1:] {
			s.names[first.Name] = append(s.names[first.Name], node.Name)
		}
	}
	s.state = cluster.New(whatif.Local(snap, few))
}

// like returns the nodes that a node stands for, and itself first: it alone without a
// sample.
func (s *sample) like(node *corev1.Node) []*corev1.Node {
	if s == nil {
		return []*corev1.Node{node}
	}
	return s.groupOf[node.Name]
}

// namesOf returns the names of nodes that others stand for.
func (s *sample) namesOf() map[string][]string {
	if s == nil {
		return nil
	}
	return s.names
}
