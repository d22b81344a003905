// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// describe says what the question is about.
func describe(v *verdict.Verdict, out *api.Explanation) {
	out.Allocator = allocatorInfo(v.Question)
	describeUsers(v, out)
	describeClaims(v, out)
}

// allocatorInfo says who answers.
func allocatorInfo(q *eligibility.Question) api.AllocatorInfo {
	f := q.Cluster.Gates.Features()
	return api.AllocatorInfo{
		Library: f.Library, Channel: f.Channel, Cluster: f.Cluster, FeatureSource: f.Source, Features: f.Enabled,
	}
}

func describeUsers(v *verdict.Verdict, out *api.Explanation) {
	if creator := v.Target.Creator; creator != nil {
		if created := creator.Object.GetCreationTimestamp(); !created.IsZero() {
			out.AgeSeconds = age(v.Question, created)
		}
	}
	out.PodCount = len(v.Target.Users)
	for _, pod := range v.Target.Users[:min(len(v.Target.Users), target.MaxPods)] {
		status := api.PodStatus{Namespace: pod.Namespace, Name: pod.Name, Phase: string(pod.Status.Phase), Node: pod.Spec.NodeName, Owner: whatif.Owner(pod)}
		if !pod.CreationTimestamp.IsZero() {
			status.Since = &pod.CreationTimestamp
			status.AgeSeconds = age(v.Question, pod.CreationTimestamp)
		}
		out.Pods = append(out.Pods, status)
	}
	if different := v.Target.Different; len(different) > 0 {
		out.DifferentPods = &api.DifferentPods{Count: len(different)}
		for i, pod := range different {
			if snapshot.Waits(pod) {
				out.DifferentPods.Waiting++
			}
			if i < target.MaxPods {
				out.DifferentPods.Names = append(out.DifferentPods.Names, pod.Name)
			}
		}
	}
	out.OtherScheduler = otherScheduler(v.Pod)
	if v.Pod != nil && snapshot.Waits(v.Pod) {
		for _, gate := range v.Pod.Spec.SchedulingGates {
			out.SchedulingGates = append(out.SchedulingGates, gate.Name)
		}
	}
	if v.Pod != nil && !v.Target.Hypothetical {
		out.SchedulerMessage = lifecycle.SchedulerMessage(v.Cluster.Snapshot, v.Pod)
	}
}

// otherScheduler says what a verdict is worth for a pod that kube-scheduler's
// default profile does not look at, nil for all others and once a node is chosen.
func otherScheduler(pod *corev1.Pod) *api.OtherScheduler {
	if pod == nil || !snapshot.Waits(pod) || pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
		return nil
	}
	return &api.OtherScheduler{Name: pod.Spec.SchedulerName, Message: fmt.Sprintf(
		"scheduler %s decides about the pod, and the verdict is that of kube-scheduler: it holds if %s is one of its profiles. Another scheduler may pick other nodes and devices; its queues and gangs are not evaluated. The pod's own events say what it decided",
		pod.Spec.SchedulerName, pod.Spec.SchedulerName)}
}

func age(q *eligibility.Question, since metav1.Time) int64 {
	return max(0, int64(q.Cluster.Snapshot.Now().Sub(since.Time).Seconds()))
}

// describeClaims lists the claims.
func describeClaims(v *verdict.Verdict, out *api.Explanation) {
	out.Claims = make([]api.ClaimExplanation, 0, len(v.PodClaims))
	var allocated []*resourceapi.ResourceClaim
	for i := range v.PodClaims {
		pc := &v.PodClaims[i]
		explained := api.ClaimExplanation{PodClaim: pc.Entry, Template: pc.Template, ExtendedResources: pc.ExtendedResources}
		if name := claimName(v.Question, pc); pc.Claim == nil && name != "" {
			explained.Namespace, explained.Name = v.Pod.Namespace, name
		}
		if pc.Claim != nil {
			explained.Namespace = pc.Claim.Namespace
			explained.Deleting = pc.Claim.DeletionTimestamp != nil
			if !pc.Generated {
				explained.Name = pc.Claim.Name
			}
			explained.ComputeDomains = lifecycle.ComputeDomains(v.Cluster.Snapshot, pc.Claim)
			if pc.Claim.Status.Allocation != nil {
				explained.Allocation = allocation(v.Question, pc.Claim)
				allocated = append(allocated, pc.Claim)
			}
		}
		out.Claims = append(out.Claims, explained)
	}
	out.Alignment = inventory.AlignmentOf(v.Cluster, allocated...)
}

func allocation(q *eligibility.Question, claim *resourceapi.ResourceClaim) *api.Allocation {
	from := claim.Status.Allocation
	a := &api.Allocation{
		Nodes: eligibility.AllocationNodes(from), ReservedFor: cluster.Consumers(claim),
		Devices: make([]api.AllocatedDevice, 0, len(from.Devices.Results)),
	}
	if from.AllocationTimestamp != nil {
		a.Since, a.AgeSeconds = from.AllocationTimestamp, age(q, *from.AllocationTimestamp)
	}
	for i := range from.Devices.Results {
		device := eligibility.AllocatedDevice(q.Pod, claim, &from.Devices.Results[i])
		id := cluster.DeviceID{Driver: device.Driver, Pool: device.Pool, Device: device.Device}
		device.Status = inventory.StatusOf(claim, &from.Devices.Results[i])
		device.Missing = q.Cluster.Snapshot.Gap(snapshot.ResourceSlices) == nil && q.Cluster.Pools.Device(id) == nil && !cluster.DeviceReady(claim, &from.Devices.Results[i])
		a.Devices = append(a.Devices, device)
	}
	return a
}

// allocatedSummary says where the devices are and who has them.
func allocatedSummary(pod *corev1.Pod, claims []api.ClaimExplanation) string {
	devices, missing := 0, 0
	var places []string
	seen := map[string]bool{}
	for _, claim := range claims {
		if claim.Allocation == nil {
			continue
		}
		devices += len(claim.Allocation.Devices)
		for _, d := range claim.Allocation.Devices {
			if d.Missing {
				missing++
			}
		}
		if !seen[claim.Allocation.Nodes] {
			seen[claim.Allocation.Nodes] = true
			places = append(places, claim.Allocation.Nodes)
		}
	}
	if len(claims) == 0 {
		return fmt.Sprintf("a device plugin of node %s serves the extended resources; no claim is needed", pod.Spec.NodeName)
	}
	text := fmt.Sprintf("%s allocated, usable on %s", english.Count(devices, "device"), english.JoinAnd(places))
	if missing > 0 {
		text += fmt.Sprintf("; %d of them no longer in any ResourceSlice", missing)
	}
	return text
}

// claimName returns the name of the claim that an entry of the pod refers to.
func claimName(q *eligibility.Question, pc *cluster.PodClaim) string {
	if q.Pod == nil {
		return ""
	}
	for _, entry := range q.Pod.Spec.ResourceClaims {
		if entry.Name == pc.Entry && entry.ResourceClaimName != nil {
			return *entry.ResourceClaimName
		}
	}
	return ""
}

// placementOf describes what the allocator picks, nil if it picks nothing.
func placementOf(v *verdict.Verdict) *api.Placement {
	if v.Placement == nil {
		return nil
	}
	placement := &api.Placement{Node: v.Placement.Node.Name, Score: v.Placement.Score}
	for i, claim := range v.Placement.Claims[:min(len(v.Placement.Claims), len(v.Placement.Allocations))] {
		placement.Claims = append(placement.Claims, eligibility.PlacementClaim(claim, eligibility.PickedDevices(v.Pod, claim, &v.Placement.Allocations[i])))
	}
	return placement
}
