// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Kinds lists the pods that wait for devices of claims, those that share an answer in one
// list, see [Options.Shares]. Pods and lists are in the order of the queue.
func Kinds(c *cluster.Cluster) [][]*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.Waiting() {
		if len(c.Claims.OfPod(pod)) > 0 {
			pods = append(pods, target.WithClassPriority(c.Snapshot, pod))
		}
	}
	slices.SortStableFunc(pods, comparePods)
	sorted := newPodKinds(c, true, pods)
	at := map[string]int{}
	var kinds [][]*corev1.Pod
	for _, pod := range pods {
		key := sorted.signature(&Queued{Pod: pod})
		i, known := at[key]
		if !known {
			i, at[key] = len(kinds), len(kinds)
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], pod)
	}
	return kinds
}
