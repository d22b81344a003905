// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// checkList collects the checks of one device for one request.
type checkList struct {
	checks []api.DeviceCheck
}

// add adds a check that fails for the given reasons, or passes if there are none. It
// reports whether it passes.
func (l *checkList) add(check, label string, reasons ...*eligibility.Reason) bool {
	out := api.DeviceCheck{Check: check, Label: label, Outcome: api.CheckPassed}
	for _, r := range reasons {
		if r == nil {
			continue
		}
		text := r.Text
		if text == r.Label {
			text = ""
		}
		if r.Claim != nil {
			text = "to claim " + english.QualifiedName(r.Claim)
		}
		if requirement := r.Requirement(); requirement != "" {
			text += ", " + requirement
		}
		if out.Outcome == api.CheckPassed {
			out.Outcome, out.Code, out.Label, out.Message = api.CheckFailed, r.Code, cmp.Or(r.Checked, r.Label), text
		} else {
			out.Message += "; " + text
		}
		out.Evidence = append(out.Evidence, r.Fact)
	}
	l.checks = append(l.checks, out)
	return out.Outcome == api.CheckPassed
}

// skip notes a check that is not made.
func (l *checkList) skip(check, label, why string) {
	l.checks = append(l.checks, api.DeviceCheck{Check: check, Label: label, Outcome: api.CheckNotEvaluated, Message: why})
}

// addUse notes a check of what claims have taken. That nothing is found does
// not say much if not all of them could be seen.
func (l *checkList) addUse(gap *snapshot.Gap, check, label string, r *eligibility.Reason) {
	if r == nil && gap != nil {
		l.skip(check, label, "not known: "+gap.Reason)
		return
	}
	l.add(check, label, r)
}

// deviceChecks returns all checks of a request on a device as seen from a node,
// each for itself. The first condition that fails is the reason in the funnel.
func deviceChecks(ctx context.Context, q *eligibility.Question, c *eligibility.Checks, d *cluster.Device, node *corev1.Node) []api.DeviceCheck {
	l := &checkList{}
	class := c.CheckClass(ctx, d)
	otherClass := class != nil && class.Code == api.ClassSelectorFalse
	inUse := c.CheckInUse(d)
	at := placeOf(q, d, node)
	gap := q.Cluster.Snapshot.Gap(snapshot.ResourceClaims)
	capacity := true
	for _, step := range eligibility.Steps() {
		name, label := step.Name, step.Label
		switch step.Check {
		case eligibility.Class:
			if otherClass || class == nil {
				l.add(name, label+" "+c.Request.Class, class)
			}
		case eligibility.Node:
			if q.Pod != nil && node != nil {
				l.add(name, label, at.misfits...)
			}
		case eligibility.Reach:
			if node == nil {
				label = "reachable from a node"
			}
			l.add(name, label, at.unreached)
		case eligibility.Ignored:
			l.addPlace(at.unreached, node, name, label, at.slice)
		case eligibility.Pool:
			l.addPlace(at.unreached, node, name, label, at.pool)
		case eligibility.BindingConditions:
			l.add(name, label, c.CheckBinding(d))
		case eligibility.Selector:
			if otherClass {
				l.skip(name, label, "not evaluated for devices of other classes")
			} else {
				listSelectors(ctx, c, l, step, d, class, inUse != nil && !c.Request.All())
			}
		case eligibility.Capacity:
			capacity = l.add(name, label, c.CheckCapacity(d, eligibility.Capacity))
		case eligibility.InUse:
			if c.Request.AdminAccess {
				l.add(name, label, inUse)
			} else {
				l.addUse(gap, name, label, inUse)
			}
		case eligibility.CapacityLeft:
			shared := gap
			if !isShared(q, d) {
				shared = nil
			}
			if capacity {
				l.addUse(shared, name, label, c.CheckCapacity(d, eligibility.CapacityLeft))
			} else {
				l.skip(name, label, "not enough even if all of it were available")
			}
		case eligibility.NodeOperations:
			if at.unreached == nil {
				l.add(name, label, c.CheckNodeOperations(d, node))
			} else {
				l.skip(name, label, notReachable(node))
			}
		case eligibility.Partition:
			switch {
			case len(d.ConsumesCounters) == 0:
				l.add(name, label)
			case !at.usable():
				l.skip(name, label, "the pool is not used")
			case inUse != nil:
				l.skip(name, label, "it is in use and has taken its part already")
			default:
				l.addUse(gap, name, label, c.CheckPartition(d, node))
			}
		case eligibility.Taint:
			l.add(name, label, eachTaint(c, d)...)
		case eligibility.Constraint:
			for _, one := range c.Request.Constraints {
				alone, request := *c, *c.Request
				request.Constraints = []cluster.Constraint{one}
				alone.Request = &request
				l.add(name, one.String(), alone.CheckConstraints(ctx, d))
			}
		default:
			// Those are made with the one before.
		}
	}
	return l.checks
}

// notReachable says why nothing else is checked about the place of a device.
func notReachable(node *corev1.Node) string {
	if node == nil {
		return "no node can reach it"
	}
	return "the node cannot reach it"
}

// addPlace notes a check of the slice or the pool, which is not made where the device
// cannot be reached.
func (l *checkList) addPlace(unreached *eligibility.Reason, node *corev1.Node, check, label string, r *eligibility.Reason) {
	if unreached != nil {
		l.skip(check, label, notReachable(node))
		return
	}
	l.add(check, label, r)
}

// devicePlace has the problems with the place of a device as seen from a node.
type devicePlace struct {
	misfits                []*eligibility.Reason
	unreached, slice, pool *eligibility.Reason
}

// usable reports whether the node can reach the device and uses its pool.
func (p *devicePlace) usable() bool {
	return p.unreached == nil && p.slice == nil && p.pool == nil
}

// placeOf makes the checks of the node, the slice and the pool.
func placeOf(q *eligibility.Question, d *cluster.Device, node *corev1.Node) *devicePlace {
	p := &devicePlace{}
	if node == nil {
		p.unreached = eligibility.Unreached(q.Cluster.Snapshot, d)
		return p
	}
	if q.Pod != nil {
		for _, u := range eligibility.Misfits(q, node) {
			p.misfits = append(p.misfits, eligibility.UnsuitableReason(u))
		}
	}
	if !eligibility.DeviceReaches(d, node) {
		elsewhere := *eligibility.Unreached(q.Cluster.Snapshot, d)
		elsewhere.Label, elsewhere.Text = "elsewhere", fmt.Sprintf("it is for %s, not for %s", eligibility.DeviceNodes(d), node.Name)
		elsewhere.Fact.Found, elsewhere.Fact.Required = eligibility.DeviceNodes(d), node.Name
		p.unreached = &elsewhere
		return p
	}
	for i := range q.Reach.Pools[node.Name] {
		seen := q.Reach.Pools[node.Name][i]
		if seen.Pool != d.Pool {
			continue
		}
		eligibility.EachDevice(seen, func(have *cluster.Device, kept *eligibility.Reason) {
			switch {
			case have.Device != d.Device || kept == nil:
			case kept.Check == eligibility.Pool:
				p.pool = kept
			default:
				p.slice = kept
			}
		})
	}
	return p
}

// listSelectors makes the checks of the selectors. Where one is false, each
// part of it that does not hold is a fact.
func listSelectors(ctx context.Context, c *eligibility.Checks, l *checkList, step eligibility.Step, d *cluster.Device, class *eligibility.Reason, passedOver bool) {
	const early = "the allocator passes over allocated devices before it evaluates selectors"
	add := func(label string, reasons ...*eligibility.Reason) {
		if passedOver && slices.ContainsFunc(reasons, func(r *eligibility.Reason) bool { return r != nil && r.Code == api.SelectorError }) {
			l.skip(step.Name, label, early)
			return
		}
		l.add(step.Name, label, reasons...)
	}
	if class != nil {
		add("class "+c.Request.Class, class)
		l.skip(step.Name, step.Label, "the class fails")
		return
	}
	for i, s := range c.Request.Selectors {
		label := "selector"
		if len(c.Request.Selectors) > 1 {
			label = fmt.Sprintf("selector %d", i+1)
		}
		object, path := cluster.ClaimSpecPath(c.Request.Claim, fmt.Sprintf("%s.selectors[%d].cel.expression", c.Request.Path, i))
		check := func(s resourceapi.DeviceSelector) *eligibility.Reason {
			return c.CheckSelector(ctx, d, s, eligibility.Selector, api.RequestSelectorFalse, label, object, path)
		}
		whole := check(s)
		if whole == nil || whole.Code != api.RequestSelectorFalse {
			add(label, whole)
			continue
		}
		var parts []*eligibility.Reason
		for _, conjunct := range c.Selectors.Compile(s.CEL.Expression).Conjuncts {
			part := check(resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: conjunct.Expression}})
			if part != nil && part.Code == api.RequestSelectorFalse {
				parts = append(parts, part)
			}
		}
		if len(parts) == 0 {
			parts = append(parts, whole)
		}
		add(label, parts...)
	}
}

// eachTaint gives a reason for each taint that is not tolerated.
func eachTaint(c *eligibility.Checks, d *cluster.Device) []*eligibility.Reason {
	var reasons []*eligibility.Reason
	for _, taint := range d.Taints {
		device, single := *d.Device, *d
		device.Taints = []resourceapi.DeviceTaint{taint}
		single.Device = &device
		reasons = append(reasons, c.CheckTaints(&single))
	}
	return reasons
}

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
