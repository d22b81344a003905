// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// FindNode looks up a node. It fails with an [*Error] if there is none of that name.
func FindNode(c *cluster.Cluster, name string) (*corev1.Node, error) {
	s := &Target{}
	err := s.findNode(c, name)
	return s.Only, err
}

// findNode looks up the only node to look at.
func (s *Target) findNode(c *cluster.Cluster, name string) error {
	nodes, known := c.Nodes.All()
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		if node.Name == name {
			s.Only = node
			return nil
		}
		names = append(names, node.Name)
	}
	err := absent(c.Snapshot, api.Ref(api.KindNode, "", name))
	gap, near := c.Snapshot.Gap(snapshot.ResourceNodes), english.DidYouMean(name, names)
	slices.SortFunc(names, english.CompareNames)
	switch {
	case near != "":
		err.Message += near
	case gap != nil:
		err.Hint = "it may exist all the same: " + gap.Reason
	case len(names) == 0:
		err.Hint = "no Node exists"
	case !known:
		err.Hint = "no Node exists, but ResourceSlices name: " + english.Sample(names, maxNodeNames)
	default:
		err.Hint = "existing nodes: " + english.Sample(names, maxNodeNames)
	}
	return err
}

// maxNodeNames limits how many names a hint has.
const maxNodeNames = 10

// Nodes returns the nodes of the question.
func (s *Target) Nodes(c *cluster.Cluster) []*corev1.Node {
	if s.Only != nil {
		return []*corev1.Node{s.Only}
	}
	nodes, _ := c.Nodes.All()
	return nodes
}

// IsElsewhere reports whether a pod is bound to another node than the node of the question.
func (s *Target) IsElsewhere(pod *corev1.Pod) bool {
	return s.Only != nil && pod.Spec.NodeName != s.Only.Name
}
