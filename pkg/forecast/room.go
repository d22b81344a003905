// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// mostSlots returns how many claims of each shape are placed.
func mostSlots() most { return most{onNode: 256, inSequence: 256} }

// copiesOn returns for how many claims, each for a pod of its own, a node has room,
// suitable or not.
func copiesOn(nodes *cluster.Nodes, pod *corev1.Pod, node *corev1.Node) int {
	if len(nodes.Fit(pod, node)) > 0 {
		return 0
	}
	return roomFor(nodes, pod, node)
}

// roomsOf returns for how many such claims the suitable nodes of a cluster have room.
func roomsOf(s *cluster.Cluster, pod *corev1.Pod) map[string]int {
	nodes, _ := s.Nodes.All()
	rooms := make(map[string]int, len(nodes))
	for _, node := range nodes {
		rooms[node.Name] = roomFor(s.Nodes, pod, node)
	}
	return rooms
}

// sortByRoom puts nodes with the most room first.
func sortByRoom(nodes []*corev1.Node, rooms map[string]int) {
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int { return rooms[b.Name] - rooms[a.Name] })
}

// roomFor is like roomOn, for suitable nodes.
func roomFor(nodes *cluster.Nodes, pod *corev1.Pod, node *corev1.Node) int {
	most := mostSlots().onNode
	if rooms := nodes.RoomFor(pod, node); len(rooms) > 0 {
		return int(min(rooms[0].Pods, int64(most)))
	}
	return most
}
