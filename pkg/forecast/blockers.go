// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// blockers finds the pods on a node that have what another pod needs. Equal pods share
// what was found.
type blockers struct {
	state *cluster.Cluster
	// claims are the claims of pods with devices; users are the pods on each node that have
	// such claims.
	claims map[*corev1.Pod][]*resourceapi.ResourceClaim
	users  map[string][]*corev1.Pod
	found  map[*api.Explanation][]*corev1.Pod
}

// newBlockers looks at a state in which all of the queue was decided.
func newBlockers(state *cluster.Cluster) *blockers {
	b := &blockers{state: state, claims: map[*corev1.Pod][]*resourceapi.ResourceClaim{}, users: map[string][]*corev1.Pod{}, found: map[*api.Explanation][]*corev1.Pod{}}
	for _, claim := range state.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, consumer := range claim.Status.ReservedFor {
			pod := state.Snapshot.Pod(claim.Namespace, consumer.Name)
			if consumer.Resource != "pods" || consumer.APIGroup != "" || pod == nil || pod.UID != consumer.UID || pod.Spec.NodeName == "" {
				continue
			}
			if b.claims[pod] == nil {
				b.users[pod.Spec.NodeName] = append(b.users[pod.Spec.NodeName], pod)
			}
			b.claims[pod] = append(b.claims[pod], claim)
		}
	}
	return b
}

// devices returns the devices of a pod.
func (b *blockers) devices(pod *corev1.Pod) []api.AllocatedDevice {
	var list []api.AllocatedDevice
	for _, claim := range b.claims[pod] {
		list = append(list, eligibility.PickedDevices(pod, claim, claim.Status.Allocation)...)
	}
	return list
}

// of returns pods on one node, the one where it fits with all claims released, that would
// have to go for a pod to fit there; none of them can stay. There may be none, as where the
// devices are used from another node.
func (b *blockers) of(ctx context.Context, d *explain.Decision) ([]*corev1.Pod, error) {
	if pods, known := b.found[d.Answer]; known {
		return pods, nil
	}
	outlook := d.Answer.Outlook
	var pods []*corev1.Pod
	for _, prospect := range []*api.Prospect{outlook.LowerPrioritiesGone, &outlook.ClaimsReleased} {
		if prospect == nil || prospect.Verdict != api.Fits || len(pods) > 0 {
			continue
		}
		node := b.state.Snapshot.Node(prospect.Node)
		if node == nil {
			continue
		}
		var err error
		if pods, err = allocator.Victims(ctx, b.state, d.Pod, node, b.users[node.Name]); err != nil {
			return nil, err
		}
	}
	b.found[d.Answer] = pods
	return pods, nil
}
