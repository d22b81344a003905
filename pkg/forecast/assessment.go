// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// assessment goes through what follows from a change.
type assessment struct {
	out *api.Impact
	// emptied is the node that pods leave, empty for none: of that is known why it takes none.
	emptied string
	// before is the cluster as it is, state the one with the change and with what has
	// happened since.
	before, state *cluster.Cluster
	// placed has the pods that wait now and found a place since the change.
	placed map[types.NamespacedName]*explain.Decision
	// decided has what became of them last.
	decided []explain.Decision
	// withoutDevices is set if replacements were placed that have no claims.
	withoutDevices bool
}

// waiting returns the pods that wait for devices and are in the queue.
func waiting(state *cluster.Cluster) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(state.Waiting()), func(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 })
}

// described returns the known facts about a pod without asking where it fits.
func described(f *fate) api.ImpactPod {
	out := api.ImpactPod{
		Namespace: f.pod.Namespace, Name: f.pod.Name, Effect: f.effect, Node: f.pod.Spec.NodeName,
		Owner: whatif.Owner(f.pod), Devices: f.devices, Drivers: f.drivers,
	}
	if !f.at.IsZero() {
		out.EvictionAt = &metav1.Time{Time: f.at}
	}
	return out
}

func key(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
