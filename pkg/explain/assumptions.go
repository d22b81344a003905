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

// assume lists what the answer takes as true without seeing it.
func (x *builder) assume() {
	x.out.Assumptions = append(x.out.Assumptions, snapshot.PreviewAssumptions(x.Cluster.Snapshot)...)
	for _, gap := range x.Cluster.Snapshot.Gaps {
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
			if len(x.Cluster.Snapshot.Slices) > 0 {
				consequence = "other devices are not known"
			}
		case snapshot.ResourceClasses, snapshot.ResourceTemplates:
			consequence = "their contents are not known"
		case snapshot.ResourceTaintRules:
			consequence = "assumed that there is no DeviceTaintRule"
		case snapshot.ResourceMetrics:
			consequence = "assumed that the feature gates are the defaults of " + clusterText(x.Question)
		case snapshot.ResourcePodGroups:
			if x.Pod == nil || x.Pod.Spec.SchedulingGroup == nil {
				continue
			}
			consequence = "which claims a group of pods shares is not known"
		case snapshot.ResourceNamespaces:
			if !wantsAdminAccess(x.Question) {
				continue
			}
			consequence = "assumed that the namespace allows admin access"
		case snapshot.ResourceEvents:
			consequence = "its events are not known"
		case snapshot.ResourceDaemonSets:
			if x.out.Verdict != api.DoesNotFit {
				continue
			}
			consequence = "whether the drivers run is not known"
		case snapshot.ResourceQueued:
			consequence = "whether Kueue has admitted it is not known"
		case snapshot.ResourceLocalQueues, snapshot.ResourceClusterQueue:
			consequence = "whether that queue of Kueue is active is not known"
		case snapshot.ResourceAutoscalers:
			if x.out.Verdict != api.DoesNotFit && x.out.Verdict != api.Blocked {
				continue
			}
			consequence = "assumed that no HorizontalPodAutoscaler sets its number of pods"
		default:
			if !x.Target.ByOwner || !target.MayOwnPods(gap.Resource) {
				continue
			}
			consequence = "the answer is about the pods whose owners are known"
		}
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf("%s: %s", gap.Reason, consequence))
	}
	if _, known := x.Cluster.Nodes.All(); !known && x.Cluster.Snapshot.Gap(snapshot.ResourceNodes) == nil {
		x.out.Assumptions = append(x.out.Assumptions, "no node is known: assumed that the nodes named in ResourceSlices exist and are suitable for the pod")
	}
	if class := x.Target.UnknownPriority(); class != "" {
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf("the priority of PriorityClass %s is not known: assumed that it is 0", class))
	}
	if x.SlowNode != "" {
		scheduler := fmt.Sprintf(`the scheduler searches for at most %s, and then says "timed out trying to allocate devices"`, verdict.SchedulerLimit)
		if !x.Cluster.Gates.Enabled("DRASchedulerFilterTimeout") {
			scheduler = "the scheduler may search for very long, because the feature gate DRASchedulerFilterTimeout is off"
		}
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf(
			"nothing fits on node %s: this is proved by counting, because the allocator's own search takes more than %s steps; %s", x.SlowNode, english.Thousands(verdict.ProvedSteps), scheduler))
	}
	for _, u := range x.Unevaluated {
		if u.Always || x.out.Verdict == api.Fits {
			x.out.Assumptions = append(x.out.Assumptions, "not evaluated: "+u.String())
		}
	}
	if x.out.Verdict == api.DoesNotFit && preemptionMatters(x.Question) {
		x.out.Assumptions = append(x.out.Assumptions, "not evaluated: preemption of pods with lower priority")
	}
	if x.Target.Workload && x.out.Verdict != api.Allocated {
		x.out.Assumptions = append(x.out.Assumptions, "nodes, conflict and remedies are for one pod, except where a remedy says how many pods fit")
	}
	if group := x.Target.Group; group != nil && !x.Cluster.Gates.Enabled("GenericWorkload") {
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf(
			"the feature gate GenericWorkload is off: the API server drops spec.schedulingGroup of new pods, and PodGroup %s has no effect on them", group.Name))
	}
	if x.Pod != nil && x.Pod.Spec.NodeName == "" {
		for _, part := range x.Cluster.Nodes.NotModelled(x.Pod) {
			x.out.Assumptions = append(x.out.Assumptions, "not evaluated: "+part)
		}
	}
	if pools := orderedPools(x.Question); len(pools) > 0 && (x.out.Verdict == api.Fits || x.out.Verdict == api.DoesNotFit) {
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf(
			"each node is evaluated alone: which compatibility groups of pool %s are in use differs between nodes, and the scheduler applies what it finds on the first node to all of them", english.JoinAnd(pools)))
	}
	for i := range x.PodClaims {
		claim, pod := x.PodClaims[i].Claim, x.Pod
		if claim != nil && pod != nil && x.Cluster.Claims.ReservedByAssumption(claim, pod) {
			x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf("claim %s is reserved for the group of the pod: assumed that the feature gate DRAWorkloadResourceClaims is on, which it is not by default in %s", claim.Name, clusterText(x.Question)))
			break
		}
	}
	x.out.Assumptions = append(x.out.Assumptions, x.Cluster.Snapshot.Notes()...)
	if skew := x.Cluster.Snapshot.Skew; x.Cluster.Snapshot.BinaryVersion() == "" && skew.From > 0 {
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf("the snapshot does not have the Kubernetes version: assumed that it is 1.%d, like the newest kubelet; %s (set --kubernetes-version)", skew.From, skew))
	} else if x.Cluster.Snapshot.ServerVersion == "" && len(x.Cluster.Snapshot.Gates) == 0 {
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf("the snapshot does not have the Kubernetes version: assumed that the feature gates are the defaults of %s (set --kubernetes-version or --feature-gates)", clusterText(x.Question)))
	}
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
