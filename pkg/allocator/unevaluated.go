// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NotModelled lists, in a few words each, what the scheduler looks at for this
// pod and [Allocator.NodeFit] and [Allocator.Check] do not: what is never
// evaluated, and what could not be read.
func (a *Allocator) NotModelled(pod *corev1.Pod) []string {
	parts := a.Unevaluated(pod)
	add := func(used bool, part string) {
		if used {
			parts = append(parts, part)
		}
	}
	add(!a.seesPodsOf(requiredAffinity(pod), pod.Namespace) && len(requiredAffinity(pod)) > 0, "affinity to pods that could not be read")
	add(!a.seesPodsOf(requiredAntiAffinity(pod), pod.Namespace) && len(requiredAntiAffinity(pod)) > 0, "anti-affinity to pods that could not be read")
	add(!a.seesPodsOf(nil, pod.Namespace) && spreads(pod), "topology spread constraints, since pods could not be read")
	add(a.selectsNamespaces(pod) && a.snap.Gap(snapshot.ResourceNamespaces) != nil, "the labels of namespaces that its affinity selects, which could not be read")
	add(slices.ContainsFunc(a.snap.Pods, func(p *corev1.Pod) bool {
		return p.Status.NominatedNodeName != "" && p.Spec.NodeName == "" && p.UID != pod.UID
	}), "pods for which others were preempted and that wait for their node")
	add(a.snap.Gap(snapshot.ResourcePods) != nil, "what pods that could not be read use")
	add(a.nodesMadeUp(), "the nodes' labels, taints and resources, which could not be read")
	return parts
}

// Unevaluated lists what this pod uses and this program never evaluates.
func (a *Allocator) Unevaluated(pod *corev1.Pod) []string {
	var parts []string
	add := func(used bool, part string) {
		if used {
			parts = append(parts, part)
		}
	}
	add(a.countsVolumes(pod), "how many volumes a node can have")
	add(a.provisions(pod), "the storage capacity that is left for new volumes")
	if name := pod.Spec.SchedulingGroup; name != nil && name.PodGroupName != nil {
		group := a.snap.PodGroup(pod.Namespace, *name.PodGroupName)
		add(group != nil && group.Spec.SchedulingConstraints != nil, "the topology constraints of its PodGroup")
		add(group != nil && group.Spec.ParentCompositePodGroupName != nil, "the other PodGroups that are scheduled with its own")
	}
	add(pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName, "the rules of scheduler "+pod.Spec.SchedulerName)
	return parts
}

// countsVolumes reports whether the plugin nodevolumelimits looks at the pod: CSI
// drivers say how many of their volumes a node can have.
func (a *Allocator) countsVolumes(pod *corev1.Pod) bool {
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.CSI != nil }) {
		return true
	}
	return slices.ContainsFunc(a.VolumesOf(pod), func(use VolumeUse) bool {
		if use.Claim == nil {
			return use.Ephemeral
		}
		volume := a.snap.Volume(use.Claim.Spec.VolumeName)
		return volume != nil && volume.Spec.CSI != nil || volume == nil && a.isProvisioned(&use)
	})
}

// provisions reports whether a volume is yet to be made for the pod.
func (a *Allocator) provisions(pod *corev1.Pod) bool {
	return slices.ContainsFunc(a.VolumesOf(pod), func(use VolumeUse) bool { return use.Claim != nil && a.isProvisioned(&use) })
}

func (a *Allocator) isProvisioned(use *VolumeUse) bool {
	class := a.snap.StorageClass(StorageClassOf(use.Claim))
	return !VolumeBound(use.Claim) && WaitsForConsumer(use.Claim, class) && class.Provisioner != "" && class.Provisioner != noProvisioner
}

func spreads(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule })
}

func (a *Allocator) selectsNamespaces(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(requiredAffinity(pod), requiredAntiAffinity(pod)), func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}
