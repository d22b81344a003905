// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// checkList collects the checks of one device for one request.
type checkList struct {
	checks []api.DeviceCheck
}

// add notes a check that fails for the given reasons, or passes if there are
// none.
func (l *checkList) add(check, label string, reasons ...*funnel.Reason) bool {
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
			text = "to claim " + naming.Qualified(r.Claim)
		}
		if requirement := r.Requirement(); requirement != "" {
			text += ", " + requirement
		}
		if out.Outcome == api.CheckPassed {
			out.Outcome, out.Code, out.Label, out.Message = api.CheckFailed, r.Code, strings.TrimSuffix(r.Label, funnel.FailsSuffix), text
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
func (l *checkList) addUse(gap *snapshot.Gap, check, label string, r *funnel.Reason) {
	if r == nil && gap != nil {
		l.skip(check, label, "not known: "+gap.Reason)
		return
	}
	l.add(check, label, r)
}

// deviceChecks makes all checks of a request on a device as seen from a node,
// each for itself. The first one that fails is the reason in the funnel.
func deviceChecks(ctx context.Context, q *funnel.Question, c *funnel.Checks, d *cluster.Device, node *corev1.Node) []api.DeviceCheck {
	l := &checkList{}
	class := c.CheckClass(ctx, d)
	otherClass := class != nil && class.Code == api.ClassSelectorFalse
	if otherClass || class == nil {
		l.add("Class", "class "+c.Request.Class, class)
	}
	reached, usable := checkPlace(q, l, d, node)
	l.add("BindingConditions", "binding conditions", c.CheckBinding(d))
	inUse := c.CheckInUse(d)
	if otherClass {
		l.skip("Selector", "selectors", "not evaluated for devices of other classes")
	} else {
		listSelectors(ctx, c, l, d, class, inUse != nil && !c.Request.All())
	}
	capacity := l.add("Capacity", "capacity", c.CheckCapacity(d, funnel.RankCapacity))
	gap := q.Snap.Gap(snapshot.ResourceClaims)
	if c.Request.AdminAccess {
		l.add("InUse", "not allocated", inUse)
	} else {
		l.addUse(gap, "InUse", "not allocated", inUse)
	}
	if capacity {
		shared := gap
		if !isShared(q, d) {
			shared = nil
		}
		l.addUse(shared, "CapacityLeft", "capacity available", c.CheckCapacity(d, funnel.RankCapacityLeft))
	} else {
		l.skip("CapacityLeft", "capacity available", "not enough even if all of it were available")
	}
	if reached {
		l.add("NodeOperations", "node operations", c.CheckNode(d, node))
	} else {
		l.skip("NodeOperations", "node operations", notReachable(node))
	}
	switch {
	case len(d.ConsumesCounters) == 0:
		l.add("Partition", "shared counters")
	case !usable:
		l.skip("Partition", "shared counters", "the pool is not used")
	case inUse != nil:
		l.skip("Partition", "shared counters", "it is in use and has taken its part already")
	default:
		l.addUse(gap, "Partition", "shared counters", c.CheckPartition(d))
	}
	l.add("Taint", "taints", eachTaint(c, d)...)
	for _, one := range c.Request.Constraints {
		alone, request := *c, *c.Request
		request.Constraints = []claimspec.Constraint{one}
		alone.Request = &request
		l.add("Constraint", one.String(), alone.CheckConstraints(ctx, d))
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

// checkPlace makes the checks of the node, the slice and the pool. It says
// whether the node can reach the device, and whether the pool is used.
func checkPlace(q *funnel.Question, l *checkList, d *cluster.Device, node *corev1.Node) (reached, usable bool) {
	if node == nil {
		l.add("Reach", "reachable from a node", funnel.Unreached(q.Snap, d))
		l.skip("Slice", "slice", notReachable(node))
		l.skip("Pool", "pool", notReachable(node))
		return false, false
	}
	if q.Pod != nil {
		var away []*funnel.Reason
		for _, u := range funnel.Misfits(q, node) {
			away = append(away, funnel.UnsuitableReason(u))
		}
		l.add("Node", "node suitable", away...)
	}
	if !funnel.DeviceReaches(d, node) {
		elsewhere := *funnel.Unreached(q.Snap, d)
		elsewhere.Label, elsewhere.Text = "elsewhere", fmt.Sprintf("it is for %s, not for %s", funnel.DeviceNodes(d), node.Name)
		elsewhere.Fact.Found, elsewhere.Fact.Required = funnel.DeviceNodes(d), node.Name
		l.add("Reach", "reachable from the node", &elsewhere)
		l.skip("Slice", "slice", notReachable(node))
		l.skip("Pool", "pool", notReachable(node))
		return false, false
	}
	l.add("Reach", "reachable from the node")
	var slice, pool *funnel.Reason
	for i := range q.Cluster.Pools[node.Name] {
		seen := q.Cluster.Pools[node.Name][i]
		if seen.Pool != d.Pool {
			continue
		}
		funnel.EachDevice(seen, func(have *cluster.Device, kept *funnel.Reason) {
			switch {
			case have.Device != d.Device || kept == nil:
			case kept.Rank == funnel.RankPool:
				pool = kept
			default:
				slice = kept
			}
		})
	}
	l.add("Slice", "slice", slice)
	l.add("Pool", "pool", pool)
	return true, slice == nil && pool == nil
}

// listSelectors makes the checks of the selectors. Where one is false, each
// part of it that does not hold is a fact.
func listSelectors(ctx context.Context, c *funnel.Checks, l *checkList, d *cluster.Device, class *funnel.Reason, passedOver bool) {
	const early = "the allocator passes over allocated devices before it evaluates selectors"
	add := func(label string, reasons ...*funnel.Reason) {
		if passedOver && slices.ContainsFunc(reasons, func(r *funnel.Reason) bool { return r != nil && r.Code == api.SelectorError }) {
			l.skip("Selector", label, early)
			return
		}
		l.add("Selector", label, reasons...)
	}
	if class != nil {
		add("class "+c.Request.Class, class)
		l.skip("Selector", "selectors", "the class fails")
		return
	}
	for i, s := range c.Request.Selectors {
		label := "selector"
		if len(c.Request.Selectors) > 1 {
			label = fmt.Sprintf("selector %d", i+1)
		}
		path := fmt.Sprintf("%s.selectors[%d].cel.expression", c.Request.Path, i)
		check := func(s resourceapi.DeviceSelector) *funnel.Reason {
			return c.CheckSelector(ctx, d, s, funnel.RankSelector, api.RequestSelectorFalse, label, whatif.ClaimObject(c.Request.Claim), path)
		}
		whole := check(s)
		if whole == nil || whole.Code != api.RequestSelectorFalse {
			add(label, whole)
			continue
		}
		var parts []*funnel.Reason
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
func eachTaint(c *funnel.Checks, d *cluster.Device) []*funnel.Reason {
	var reasons []*funnel.Reason
	for _, taint := range d.Taints {
		device, single := *d.Device, *d
		device.Taints = []resourceapi.DeviceTaint{taint}
		single.Device = &device
		reasons = append(reasons, c.CheckTaints(&single))
	}
	return reasons
}
