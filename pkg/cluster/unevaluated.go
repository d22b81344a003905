// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NotModelled lists, in a few words each, the parts of the scheduler's decision about this
// pod that neither [Nodes.Fit] nor the allocator evaluates: plugins that are not modeled,
// and objects that could not be read.
func (n *Nodes) NotModelled(pod *corev1.Pod) []string {
	parts := n.Unevaluated(pod)
	add := func(used bool, part string) {
		if used {
			parts = append(parts, part)
		}
	}
	add(!n.seesPodsOf(requiredAffinity(pod), pod.Namespace) && len(requiredAffinity(pod)) > 0, "affinity to pods that could not be read")
	add(!n.seesPodsOf(requiredAntiAffinity(pod), pod.Namespace) && len(requiredAntiAffinity(pod)) > 0, "anti-affinity to pods that could not be read")
	add(!n.seesPodsOf(nil, pod.Namespace) && spreads(pod), "topology spread constraints, since pods could not be read")
	add(selectsNamespaces(pod) && n.snap.Gap(snapshot.ResourceNamespaces) != nil, "the labels of namespaces that its affinity selects, which could not be read")
	add(slices.ContainsFunc(n.snap.Pods, func(p *corev1.Pod) bool {
		return p.Status.NominatedNodeName != "" && p.Spec.NodeName == "" && p.UID != pod.UID
	}), "other pods with a nominated node (status.nominatedNodeName)")
	add(n.snap.Gap(snapshot.ResourcePods) != nil, "what pods that could not be read use")
	add(n.madeUp(), "the nodes' labels, taints and resources, which could not be read")
	return parts
}

// Unevaluated lists what this pod uses and this program never evaluates.
func (n *Nodes) Unevaluated(pod *corev1.Pod) []string {
	var parts []string
	add := func(used bool, part string) {
		if used {
			parts = append(parts, part)
		}
	}
	add(countsVolumes(n.snap, pod), "how many volumes a node can have")
	add(provisions(n.snap, pod), "the storage capacity that is left for new volumes")
	if name := pod.Spec.SchedulingGroup; name != nil && name.PodGroupName != nil {
		group := n.snap.PodGroup(pod.Namespace, *name.PodGroupName)
		add(group != nil && group.Spec.SchedulingConstraints != nil, "the topology constraints of its PodGroup")
		// Without the gate, the scheduler does not look at the parent (podGroupHasParent in
		// pkg/scheduler/backend/queue/workload_forest.go of Kubernetes v1.37.1).
		if group != nil && group.Spec.ParentCompositePodGroupName != nil && n.gates.Enabled("CompositePodGroup") {
			parent := *group.Spec.ParentCompositePodGroupName
			top, _ := n.snap.TopOf(group)
			if why := n.snap.Unknown(snapshot.ResourceCompositePodGroups, pod.Namespace); why != "" && top == nil {
				add(true, fmt.Sprintf("the other groups of CompositePodGroup %s, with which the scheduler places PodGroup %s or none (%s)", parent, group.Name, why))
			}
			for _, composite := range []*schedulingv1alpha3.CompositePodGroup{n.snap.CompositePodGroup(pod.Namespace, parent), top} {
				if composite != nil && composite.Spec.SchedulingConstraints != nil {
					add(true, "the topology constraints of CompositePodGroup "+composite.Name)
					break
				}
			}
		}
	}
	add(pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName, "the rules of scheduler "+pod.Spec.SchedulerName)
	return parts
}

// countsVolumes reports whether the plugin nodevolumelimits looks at the pod: CSI
// drivers say how many of their volumes a node can have.
func countsVolumes(snap *snapshot.Snapshot, pod *corev1.Pod) bool {
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.CSI != nil }) {
		return true
	}
	return slices.ContainsFunc(VolumesOf(snap, pod), func(use VolumeUse) bool {
		if use.Claim == nil {
			return use.Ephemeral
		}
		volume := snap.Volume(use.Claim.Spec.VolumeName)
		return volume != nil && volume.Spec.CSI != nil || volume == nil && isProvisioned(snap, &use)
	})
}

// provisions reports whether a volume is yet to be made for the pod.
func provisions(snap *snapshot.Snapshot, pod *corev1.Pod) bool {
	return slices.ContainsFunc(VolumesOf(snap, pod), func(use VolumeUse) bool { return use.Claim != nil && isProvisioned(snap, &use) })
}

func isProvisioned(snap *snapshot.Snapshot, use *VolumeUse) bool {
	class := snap.StorageClass(StorageClassOf(use.Claim))
	return !VolumeBound(use.Claim) && WaitsForConsumer(use.Claim, class) && class.Provisioner != "" && class.Provisioner != noProvisioner
}

func spreads(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule })
}

func selectsNamespaces(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(requiredAffinity(pod), requiredAntiAffinity(pod)), func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}
