// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// PodsUsing lists the pods that use a claim, the longest waiting first.
func PodsUsing(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) []*corev1.Pod {
	var users []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Namespace != claim.Namespace {
			continue
		}
		for name := range resourceclaim.PodClaims(pod) {
			if name == claim.Name {
				users = append(users, pod)
				break
			}
		}
	}
	SortPods(users)
	return users
}
