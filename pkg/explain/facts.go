// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Facts describes what a device is and who has it.
func deviceFacts(q *eligibility.Question, d *cluster.Device) *api.DeviceExplanation {
	nodes, _ := q.Cluster.Nodes.All()
	reaching := slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool { return !eligibility.DeviceReaches(d, node) })
	out := &api.DeviceExplanation{
		Driver: d.ID.Driver, Pool: d.ID.Pool, Name: d.ID.Device,
		Slice: d.Slice.Name, Generation: d.Slice.Spec.Pool.Generation,
		Nodes: eligibility.DeviceNodes(d), NodeCount: len(reaching),
		Shared:            isShared(q, d),
		BindingConditions: d.BindingConditions, BindingFailureConditions: d.BindingFailureConditions,
		Counters: deviceCounters(q, d), Capacity: deviceCapacity(q, d),
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		out.Attributes = append(out.Attributes, api.DeviceValue{Name: string(name), Value: selector.Literal(d.Attributes[name])})
	}
	for _, taint := range d.Taints {
		out.Taints = append(out.Taints, api.TaintEvidence{Taint: taint.String(), Since: taint.TimeAdded, Evidence: cluster.TaintEvidence(q.Cluster, d, taint)})
	}
	if gap := q.Cluster.Snapshot.Gap(snapshot.ResourceClaims); gap != nil && (out.Shared || !q.Cluster.Usage.InUse(d.ID)) {
		out.HoldersUnknown = gap.Reason
	}
	for _, holder := range q.Cluster.Usage.Holders(d.ID) {
		out.Holders = append(out.Holders, deviceHolder(holder))
		out.Health = append(out.Health, deviceHealth(q, holder)...)
	}
	return out
}

func isShared(q *eligibility.Question, d *cluster.Device) bool {
	return q.Cluster.Gates.Enabled("DRAConsumableCapacity") && d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}

func deviceCapacity(q *eligibility.Question, d *cluster.Device) []api.DeviceCapacity {
	var list []api.DeviceCapacity
	used := q.Cluster.Usage.Consumed(d.ID)
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		total := d.Capacity[name].Value
		c := api.DeviceCapacity{Name: string(name), Total: total.String()}
		if isShared(q, d) {
			consumed, left := used[name].DeepCopy(), total.DeepCopy()
			left.Sub(consumed)
			c.Consumed, c.Available = consumed.String(), left.String()
		}
		list = append(list, c)
	}
	return list
}

func deviceCounters(q *eligibility.Question, d *cluster.Device) []api.DeviceCounter {
	var list []api.DeviceCounter
	state := q.Cluster.Partitions.Use(d.Pool)
	for _, consumption := range d.ConsumesCounters {
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			takes := consumption.Counters[name].Value
			c := api.DeviceCounter{
				CounterSet: consumption.CounterSet, Counter: name, Consumes: takes.String(),
				CompatibilityGroups: consumption.CompatibilityGroups,
			}
			if use, ok := state.Counter(consumption.CounterSet, name); ok {
				c.Total, c.Available = use.Total.String(), use.Left.String()
				for _, id := range use.By {
					c.UsedBy = append(c.UsedBy, id.Device)
				}
			}
			list = append(list, c)
		}
	}
	return list
}

func deviceHolder(holder cluster.Holder) api.DeviceHolder {
	claim := holder.Claim
	result := eligibility.AllocatedDevice(nil, claim, holder.Result)
	h := api.DeviceHolder{
		Namespace: claim.Namespace, Name: claim.Name, Request: result.Request,
		ShareID: result.ShareID, ConsumedCapacity: result.ConsumedCapacity, AdminAccess: result.AdminAccess,
		Since: claim.Status.Allocation.AllocationTimestamp, ReservedFor: cluster.Consumers(claim),
	}
	if status := cluster.DeviceStatus(claim, holder.Result); status != nil {
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

// deviceHealth finds what kubelets say about a device that a claim has.
func deviceHealth(q *eligibility.Question, holder cluster.Holder) []api.DeviceHealth {
	var found []api.DeviceHealth
	for _, h := range q.Cluster.Claims.HealthOf(holder, lifecycle.PodsUsing(q.Cluster.Snapshot, holder.Claim)) {
		found = append(found, api.DeviceHealth{Pod: api.RefTo(api.KindPod, h.Pod), Health: string(h.Status), Message: h.Message})
	}
	return found
}
