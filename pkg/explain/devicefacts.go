// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// deviceFacts describes what a device is and who has it.
func (x *inquiry) deviceFacts(d *allocator.Device) *DeviceExplanation {
	nodes, _ := x.site.alloc.Nodes()
	reaching := slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool { return !deviceReaches(d, node) })
	out := &DeviceExplanation{
		Driver: d.ID.Driver, Pool: d.ID.Pool, Name: d.ID.Device,
		Slice: d.Slice.Name, Generation: d.Slice.Spec.Pool.Generation,
		Nodes: deviceNodes(d), NodeCount: len(reaching),
		Shared:            x.shared(d),
		BindingConditions: d.BindingConditions, BindingFailureConditions: d.BindingFailureConditions,
		Counters: x.deviceCounters(d), Capacity: x.deviceCapacity(d),
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		out.Attributes = append(out.Attributes, DeviceValue{Name: string(name), Value: attributeText(d.Attributes[name])})
	}
	for _, taint := range d.Taints {
		out.Taints = append(out.Taints, DeviceTaint{Taint: taintText(taint), Since: taint.TimeAdded, Evidence: taintEvidence(x.site.alloc, d, taint)})
	}
	if gap := x.snap.Gap(snapshot.ResourceClaims); gap != nil && (out.Shared || !x.site.alloc.InUse(d.ID)) {
		out.HoldersUnknown = gap.Reason
	}
	for _, holder := range x.site.alloc.Holders(d.ID) {
		out.Holders = append(out.Holders, deviceHolder(holder))
		out.Health = append(out.Health, x.deviceHealth(d.ID, holder)...)
	}
	return out
}

func (x *inquiry) shared(d *allocator.Device) bool {
	return x.site.alloc.FeatureEnabled("DRAConsumableCapacity") && d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}

// deviceNodes says where a device can be used.
func deviceNodes(d *allocator.Device) string {
	switch name, all, selector := nodesFor(d); {
	case name != nil && *name != "":
		return *name
	case all != nil && *all:
		return "any node"
	case selector != nil:
		return allocationNodes(&resourceapi.AllocationResult{NodeSelector: selector})
	default:
		return "no node"
	}
}

func (x *inquiry) deviceCapacity(d *allocator.Device) []DeviceCapacity {
	var list []DeviceCapacity
	used := x.site.alloc.Consumed(d.ID)
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		total := d.Capacity[name].Value
		c := DeviceCapacity{Name: string(name), Total: total.String()}
		if x.shared(d) {
			consumed, left := used[name].DeepCopy(), total.DeepCopy()
			left.Sub(consumed)
			c.Consumed, c.Left = consumed.String(), left.String()
		}
		list = append(list, c)
	}
	return list
}

func (x *inquiry) deviceCounters(d *allocator.Device) []DeviceCounter {
	var list []DeviceCounter
	state := x.site.alloc.PartitionUse(d.Pool)
	for _, consumption := range d.ConsumesCounters {
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			takes := consumption.Counters[name].Value
			c := DeviceCounter{
				CounterSet: consumption.CounterSet, Counter: name, Takes: takes.String(),
				CompatibilityGroups: consumption.CompatibilityGroups,
			}
			if use, ok := state.Counter(consumption.CounterSet, name); ok {
				c.Total, c.Left = use.Total.String(), use.Left.String()
				for _, id := range use.By {
					c.UsedBy = append(c.UsedBy, id.Device)
				}
			}
			list = append(list, c)
		}
	}
	return list
}

func deviceHolder(holder allocator.Holder) DeviceHolder {
	claim := holder.Claim
	result := allocatedDevice(holder.Result)
	h := DeviceHolder{
		Namespace: claim.Namespace, Name: claim.Name, Request: result.Request,
		ShareID: result.ShareID, ConsumedCapacity: result.ConsumedCapacity, AdminAccess: result.AdminAccess,
		Since: claim.Status.Allocation.AllocationTimestamp,
	}
	for _, consumer := range claim.Status.ReservedFor {
		h.ReservedFor = append(h.ReservedFor, strings.TrimSuffix(consumer.Resource, "s")+"/"+consumer.Name)
	}
	if status := allocator.DeviceStatus(claim, holder.Result); status != nil {
		for _, c := range status.Conditions {
			text := fmt.Sprintf("%s=%s", c.Type, c.Status)
			if c.Reason != "" {
				text += " (" + c.Reason + ")"
			}
			h.Conditions = append(h.Conditions, text)
		}
	}
	return h
}

// deviceHealth finds what the kubelet writes about a device into the status of
// the pods of a claim. Where a request has several devices, it says which one
// is meant only if the driver gives no CDI name.
func (x *inquiry) deviceHealth(id allocator.DeviceID, holder allocator.Holder) []DeviceHealth {
	sameRequest := 0
	for i := range holder.Claim.Status.Allocation.Devices.Results {
		if holder.Claim.Status.Allocation.Devices.Results[i].Request == holder.Result.Request {
			sameRequest++
		}
	}
	allOfClaim := len(holder.Claim.Status.Allocation.Devices.Results)
	base, _, _ := strings.Cut(holder.Result.Request, "/")
	var found []DeviceHealth
	for _, pod := range usersOf(x.snap, holder.Claim) {
		of := map[corev1.ResourceName]int{}
		for _, entry := range x.site.alloc.PodClaims(pod) {
			if entry.Claim != nil && entry.Claim.Name == holder.Claim.Name {
				of[corev1.ResourceName("claim:"+entry.Entry)] = allOfClaim
				of[corev1.ResourceName("claim:"+entry.Entry+"/"+base)] = sameRequest
			}
		}
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			for _, r := range status.AllocatedResourcesStatus {
				devices, ours := of[r.Name]
				for _, health := range r.Resources {
					if !ours || devices != 1 && string(health.ResourceID) != id.String() {
						continue
					}
					h := DeviceHealth{Pod: pod.Namespace + "/" + pod.Name, Health: string(health.Health)}
					if health.Message != nil {
						h.Message = *health.Message
					}
					if !slices.Contains(found, h) {
						found = append(found, h)
					}
				}
			}
		}
	}
	return found
}
