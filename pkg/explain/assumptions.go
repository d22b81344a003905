// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// assumptions lists what an answer takes as true without seeing it.
func assumptions(v *verdict.Verdict, outcome api.Verdict) []string {
	list := snapshot.PreviewAssumptions(v.Cluster.Snapshot)
	for _, gap := range v.Cluster.Snapshot.Gaps {
		consequence := ""
		switch gap.Resource {
		case snapshot.ResourceNodes:
			consequence = "assumed that the nodes named in ResourceSlices exist and are suitable for the pod"
		case snapshot.ResourcePods:
			consequence = "assumed that the nodes have enough CPU and memory available for the pod"
		case snapshot.ResourceClaims:
			consequence = "assumed that no device is allocated to another claim"
		case snapshot.ResourceSlices:
			consequence = "no device is known"
			if len(v.Cluster.Snapshot.Slices) > 0 {
				consequence = "other devices are not known"
			}
		case snapshot.ResourceClasses, snapshot.ResourceTemplates:
			consequence = "their contents are not known"
		case snapshot.ResourceTaintRules:
			consequence = "assumed that there is no DeviceTaintRule"
		case snapshot.ResourceMetrics:
			consequence = "assumed that the feature gates are the defaults of " + clusterText(v.Question)
		case snapshot.ResourcePodGroups:
			if v.Pod == nil || v.Pod.Spec.SchedulingGroup == nil {
				continue
			}
			consequence = "which claims a group of pods shares is not known"
		case snapshot.ResourceNamespaces:
			if !wantsAdminAccess(v.Question) {
				continue
			}
			consequence = "assumed that the namespace allows admin access"
		case snapshot.ResourceEvents:
			consequence = "its events are not known"
		case snapshot.ResourceDaemonSets:
			if outcome != api.DoesNotFit {
				continue
			}
			consequence = "whether the drivers run is not known"
		case snapshot.ResourceQueued:
			consequence = "whether Kueue has admitted it is not known"
		case snapshot.ResourceLocalQueues, snapshot.ResourceClusterQueue:
			consequence = "whether that queue of Kueue is active is not known"
		case snapshot.ResourceAutoscalers:
			if outcome != api.DoesNotFit && outcome != api.Blocked {
				continue
			}
			consequence = "assumed that no HorizontalPodAutoscaler sets its number of pods"
		default:
			if !v.Target.ByOwner || !target.MayOwnPods(gap.Resource) {
				continue
			}
			consequence = "the answer is about the pods whose owners are known"
		}
		list = append(list, fmt.Sprintf("%s: %s", gap.Reason, consequence))
	}
	if _, known := v.Cluster.Nodes.All(); !known && v.Cluster.Snapshot.Gap(snapshot.ResourceNodes) == nil {
		list = append(list, "no node is known: assumed that the nodes named in ResourceSlices exist and are suitable for the pod")
	}
	if class := v.Target.UnknownPriority(); class != "" {
		list = append(list, fmt.Sprintf("the priority of PriorityClass %s is not known: assumed that it is 0", class))
	}
	if v.SlowNode != "" {
		scheduler := fmt.Sprintf(`the scheduler searches for at most %s, and then says "timed out trying to allocate devices"`, verdict.SchedulerLimit)
		if !v.Cluster.Gates.Enabled("DRASchedulerFilterTimeout") {
			scheduler = "the scheduler may search for very long, because the feature gate DRASchedulerFilterTimeout is off"
		}
		list = append(list, fmt.Sprintf(
			"nothing fits on node %s: this is proved by counting, because the allocator's own search takes more than %s steps; %s", v.SlowNode, english.Thousands(verdict.ProvedSteps), scheduler))
	}
	for _, u := range v.Unevaluated {
		if u.Always || outcome == api.Fits {
			list = append(list, "not evaluated: "+u.String())
		}
	}
	if outcome == api.DoesNotFit && preemptionMatters(v.Question) {
		list = append(list, "not evaluated: preemption of pods with lower priority")
	}
	if v.Target.Workload && outcome != api.Allocated {
		list = append(list, "nodes, conflict and remedies are for one pod, except where a remedy says how many pods fit")
	}
	if group := v.Target.Group; group != nil && !v.Cluster.Gates.Enabled("GenericWorkload") {
		list = append(list, fmt.Sprintf(
			"the feature gate GenericWorkload is off: the API server drops spec.schedulingGroup of new pods, and PodGroup %s has no effect on them", group.Name))
	}
	if v.Pod != nil && v.Pod.Spec.NodeName == "" {
		for _, part := range v.Cluster.Nodes.NotModelled(v.Pod) {
			list = append(list, "not evaluated: "+part)
		}
	}
	if pools := orderedPools(v.Question); len(pools) > 0 && (outcome == api.Fits || outcome == api.DoesNotFit) {
		list = append(list, fmt.Sprintf(
			"each node is evaluated alone: which compatibility groups of pool %s are in use differs between nodes, and the scheduler applies what it finds on the first node to all of them", english.JoinAnd(pools)))
	}
	for i := range v.PodClaims {
		claim, pod := v.PodClaims[i].Claim, v.Pod
		if claim != nil && pod != nil && v.Cluster.Claims.ReservedByAssumption(claim, pod) {
			list = append(list, fmt.Sprintf("claim %s is reserved for the group of the pod: assumed that the feature gate DRAWorkloadResourceClaims is on, which it is not by default in %s", claim.Name, clusterText(v.Question)))
			break
		}
	}
	list = append(list, v.Cluster.Snapshot.Notes()...)
	if skew := v.Cluster.Snapshot.Skew; v.Cluster.Snapshot.BinaryVersion() == "" && skew.From > 0 {
		list = append(list, fmt.Sprintf("the snapshot does not have the Kubernetes version: assumed that it is 1.%d, like the newest kubelet; %s (set --kubernetes-version)", skew.From, skew))
	} else if v.Cluster.Snapshot.ServerVersion == "" && len(v.Cluster.Snapshot.Gates) == 0 {
		list = append(list, fmt.Sprintf("the snapshot does not have the Kubernetes version: assumed that the feature gates are the defaults of %s (set --kubernetes-version or --feature-gates)", clusterText(v.Question)))
	}
	return list
}

// wantsAdminAccess reports whether a claim asks for devices besides their users.
func wantsAdminAccess(q *eligibility.Question) bool {
	return slices.ContainsFunc(q.PodClaims, func(pc cluster.PodClaim) bool {
		return pc.Claim != nil && slices.ContainsFunc(pc.Claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
			return r.Exactly != nil && ptr.Deref(r.Exactly.AdminAccess, false)
		})
	})
}

// preemptionMatters reports whether pods of lower priority use what the pod lacks
// on some node. (Devices are never preempted.)
func preemptionMatters(q *eligibility.Question) bool {
	if q.Pod == nil {
		return false
	}
	short := map[string]bool{}
	for _, u := range q.Reach.Unsuitable {
		if u.Misfit.Filter == cluster.FilterResources || u.Misfit.Filter == cluster.FilterPods {
			short[u.Node.Name] = true
		}
	}
	priority := ptr.Deref(q.Pod.Spec.Priority, 0)
	return slices.ContainsFunc(q.Cluster.Snapshot.Pods, func(pod *corev1.Pod) bool {
		return short[pod.Spec.NodeName] && ptr.Deref(pod.Spec.Priority, 0) < priority
	})
}

// orderedPools returns the pools for which it matters in which order the scheduler tries
// nodes.
func orderedPools(q *eligibility.Question) []string {
	nodes := map[*cluster.Pool]int{}
	var found []string
	for _, node := range q.Reach.Candidates {
		for _, pool := range q.Reach.Pools[node.Name] {
			if !pool.Usable() || !q.Cluster.Partitions.DependsOnNode(pool.Pool) {
				continue
			}
			if nodes[pool.Pool]++; nodes[pool.Pool] == 2 {
				found = append(found, pool.Pool.Driver+"/"+pool.Pool.Name)
			}
		}
	}
	return found
}

func clusterText(q *eligibility.Question) string {
	switch from := q.Cluster.Snapshot.Skew.From; {
	case q.Cluster.Snapshot.ServerVersion != "":
		return "Kubernetes " + q.Cluster.Snapshot.ServerVersion
	case from > 0:
		return fmt.Sprintf("Kubernetes 1.%d", from)
	default:
		return "the newest version known here"
	}
}
