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

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
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
func (l *checkList) add(check, label string, reasons ...*reason) bool {
	out := api.DeviceCheck{Check: check, Label: label, Outcome: api.CheckPassed}
	for _, r := range reasons {
		if r == nil {
			continue
		}
		text := r.text
		if text == r.label {
			text = ""
		}
		if r.claim != nil {
			text = "to claim " + naming.Qualified(r.claim)
		}
		if requirement := r.requirement(); requirement != "" {
			text += ", " + requirement
		}
		if out.Outcome == api.CheckPassed {
			out.Outcome, out.Code, out.Label, out.Message = api.CheckFailed, r.code, strings.TrimSuffix(r.label, failsSuffix), text
		} else {
			out.Message += "; " + text
		}
		out.Evidence = append(out.Evidence, r.fact)
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
func (l *checkList) addUse(gap *snapshot.Gap, check, label string, r *reason) {
	if r == nil && gap != nil {
		l.skip(check, label, "not known: "+gap.Reason)
		return
	}
	l.add(check, label, r)
}

// deviceChecks makes all checks of a request on a device as seen from a node,
// each for itself. The first one that fails is the reason in the funnel.
func (x *inquiry) deviceChecks(ctx context.Context, c *checks, d *allocator.Device, node *corev1.Node) []api.DeviceCheck {
	l := &checkList{}
	class := c.checkClass(ctx, d)
	otherClass := class != nil && class.code == api.ClassSelectorFalse
	if otherClass || class == nil {
		l.add("Class", "class "+c.request.Class, class)
	}
	reached, usable := x.checkPlace(l, d, node)
	l.add("BindingConditions", "binding conditions", c.checkBinding(d))
	inUse := c.checkInUse(d)
	if otherClass {
		l.skip("Selector", "selectors", "not evaluated for devices of other classes")
	} else {
		c.listSelectors(ctx, l, d, class, inUse != nil && !c.request.All())
	}
	capacity := l.add("Capacity", "capacity", c.checkCapacity(d, rankCapacity))
	gap := x.snap.Gap(snapshot.ResourceClaims)
	if c.request.AdminAccess {
		l.add("InUse", "not allocated", inUse)
	} else {
		l.addUse(gap, "InUse", "not allocated", inUse)
	}
	if capacity {
		shared := gap
		if !x.shared(d) {
			shared = nil
		}
		l.addUse(shared, "CapacityLeft", "capacity available", c.checkCapacity(d, rankCapacityLeft))
	} else {
		l.skip("CapacityLeft", "capacity available", "not enough even if all of it were available")
	}
	if reached {
		l.add("NodeOperations", "node operations", c.checkNode(d, node))
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
		l.addUse(gap, "Partition", "shared counters", c.checkPartition(d))
	}
	l.add("Taint", "taints", c.eachTaint(d)...)
	for _, one := range c.request.Constraints {
		alone, request := *c, *c.request
		request.Constraints = []claimspec.Constraint{one}
		alone.request = &request
		l.add("Constraint", one.String(), alone.checkConstraints(ctx, d))
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
func (x *inquiry) checkPlace(l *checkList, d *allocator.Device, node *corev1.Node) (reached, usable bool) {
	if node == nil {
		l.add("Reach", "reachable from a node", unreached(x.snap, d))
		l.skip("Slice", "slice", notReachable(node))
		l.skip("Pool", "pool", notReachable(node))
		return false, false
	}
	if x.subject.pod != nil {
		var away []*reason
		for _, u := range x.misfits(node) {
			away = append(away, unsuitableReason(u))
		}
		l.add("Node", "node suitable", away...)
	}
	if !deviceReaches(d, node) {
		elsewhere := *unreached(x.snap, d)
		elsewhere.label, elsewhere.text = "elsewhere", fmt.Sprintf("it is for %s, not for %s", deviceNodes(d), node.Name)
		elsewhere.fact.Found, elsewhere.fact.Required = deviceNodes(d), node.Name
		l.add("Reach", "reachable from the node", &elsewhere)
		l.skip("Slice", "slice", notReachable(node))
		l.skip("Pool", "pool", notReachable(node))
		return false, false
	}
	l.add("Reach", "reachable from the node")
	var slice, pool *reason
	for i := range x.site.pools[node.Name] {
		seen := x.site.pools[node.Name][i]
		if seen.Pool != d.Pool {
			continue
		}
		eachDevice(seen, func(have *allocator.Device, kept *reason) {
			switch {
			case have.Device != d.Device || kept == nil:
			case kept.rank == rankPool:
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
func (c *checks) listSelectors(ctx context.Context, l *checkList, d *allocator.Device, class *reason, passedOver bool) {
	const early = "the allocator passes over allocated devices before it evaluates selectors"
	add := func(label string, reasons ...*reason) {
		if passedOver && slices.ContainsFunc(reasons, func(r *reason) bool { return r != nil && r.code == api.SelectorError }) {
			l.skip("Selector", label, early)
			return
		}
		l.add("Selector", label, reasons...)
	}
	if class != nil {
		add("class "+c.request.Class, class)
		l.skip("Selector", "selectors", "the class fails")
		return
	}
	for i, s := range c.request.Selectors {
		label := "selector"
		if len(c.request.Selectors) > 1 {
			label = fmt.Sprintf("selector %d", i+1)
		}
		path := fmt.Sprintf("%s.selectors[%d].cel.expression", c.request.Path, i)
		check := func(s resourceapi.DeviceSelector) *reason {
			return c.checkSelector(ctx, d, s, rankSelector, api.RequestSelectorFalse, label, whatif.ClaimObject(c.request.Claim), path)
		}
		whole := check(s)
		if whole == nil || whole.code != api.RequestSelectorFalse {
			add(label, whole)
			continue
		}
		var parts []*reason
		for _, conjunct := range c.selectors.Compile(s.CEL.Expression).Conjuncts {
			part := check(resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: conjunct.Expression}})
			if part != nil && part.code == api.RequestSelectorFalse {
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
func (c *checks) eachTaint(d *allocator.Device) []*reason {
	var reasons []*reason
	for _, taint := range d.Taints {
		device, single := *d.Device, *d
		device.Taints = []resourceapi.DeviceTaint{taint}
		single.Device = &device
		reasons = append(reasons, c.checkTaints(&single))
	}
	return reasons
}
