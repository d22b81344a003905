// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// GroupsByUse divides what [Contents.Groups] puts together: the nodes of a group
// also have the same misfits, and devices divided in the same way among claims.
func (c *NodeContents) GroupsByUse(q *eligibility.Question, nodes []*corev1.Node) [][]*corev1.Node {
	var groups [][]*corev1.Node
	at := map[string]int{}
	for _, same := range c.Groups(q, nodes) {
		for _, node := range same {
			key := fmt.Sprintf("%p %s %s", same[0], misfitKey(q, node), holderKey(q, node))
			i, known := at[key]
			if !known {
				i = len(groups)
				at[key] = i
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], node)
		}
	}
	return groups
}

// misfitKey returns the same for nodes that the pod cannot use for the same reasons.
func misfitKey(q *eligibility.Question, node *corev1.Node) string {
	var key strings.Builder
	for _, u := range q.Reach.Misfits[node.Name] {
		fmt.Fprintf(&key, "%s %q %s/%s ", u.Code, u.Misfit.Reason, u.Misfit.Available.String(), u.Misfit.Allocatable.String())
	}
	return key.String()
}

// holderKey returns the same for nodes of which claims have the same devices, by their
// places, and matter as much.
func holderKey(q *eligibility.Question, node *corev1.Node) string {
	var key contentText
	at := map[*resourceapi.ResourceClaim]int{}
	for _, pool := range q.Reach.Pools[node.Name] {
		for i := range pool.Devices {
			for _, h := range q.Cluster.Usage.Holders(pool.Devices[i].ID) {
				number, known := at[h.Claim]
				if !known {
					number = len(at)
					at[h.Claim] = number
				}
				key.words(fmt.Sprint(i, number))
			}
		}
	}
	return string(key.bytes)
}
