// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
)

// describeDevice describes a device of a finished answer, and makes every check of every
// request on it. The summary has the answer as a clause. Only is the only node of the question,
// nil for all.
func describeDevice(ctx context.Context, q *eligibility.Question, answer *api.Explanation, summary string, only *corev1.Node, d *cluster.Device) (*api.DeviceExplanation, error) {
	v := &view{Question: q, answer: answer, summary: summary, only: only, device: deviceFacts(q, d)}
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				v.device.Requests = append(v.device.Requests, v.request(ctx, i, f, d))
			}
		}
	}
	v.device.Summary = english.Sentence(v.conclude())
	return v.device, ctx.Err()
}

// view is a device as a finished answer sees it.
type view struct {
	*eligibility.Question
	answer *api.Explanation
	// summary is the summary of the answer, as a clause.
	summary string
	// only is the one node that the question is about, nil for all.
	only   *corev1.Node
	device *api.DeviceExplanation
}

// request tells how a device fares for one request.
func (v *view) request(ctx context.Context, claim int, f *eligibility.Funnel, d *cluster.Device) api.DeviceRequest {
	node := v.closest(ctx, f, d)
	explained := &v.answer.Claims[v.Claims[claim].Index]
	out := api.DeviceRequest{
		PodClaim: explained.PodClaim, Name: f.Request.Name, DeviceClass: f.Request.Class,
		ExtendedResource: f.Checks.ExtendedResource,
		Checks:           deviceChecks(ctx, v.Question, f.Checks, d, node),
	}
	switch {
	case explained.Name != "":
		out.Claim = api.Ref(api.KindClaim, explained.Namespace, explained.Name)
	case explained.Template != "":
		out.Claim = api.Ref(api.KindTemplate, explained.Namespace, explained.Template)
	}
	if place, ok := eligibility.ExtendedRequestOf(v.Question, f.Request.Claim, f.Request.Name); ok {
		out.Container = place.Container.Name
	}
	if node != nil {
		out.Node = node.Name
	}
	var failed []api.DeviceCheck
	for _, check := range out.Checks {
		if check.Outcome == api.CheckFailed {
			failed = append(failed, check)
		}
	}
	switch {
	case slices.ContainsFunc(v.placed(claim, f.Request), func(p api.AllocatedDevice) bool {
		return p.Driver == d.ID.Driver && p.Pool == d.ID.Pool && p.Device == d.ID.Device
	}):
		out.Outcome = api.Picked
	case len(failed) > 0:
		out.Outcome = api.Rejected
		out.Message = failed[0].Message
	default:
		out.Outcome = api.Eligible
		out.Message = v.notPicked(ctx, claim, f, d, node)
	}
	return out
}

// closest returns the node for which a request looks at a device: the node of the question,
// the node that the allocator picks, or the node where the device passes most checks. Nodes
// that the pod cannot use come last.
func (v *view) closest(ctx context.Context, f *eligibility.Funnel, d *cluster.Device) *corev1.Node {
	if v.only != nil {
		return v.only
	}
	var best *corev1.Node
	furthest := eligibility.Check(-1)
	for _, node := range v.Reach.Candidates {
		if !eligibility.DeviceReaches(d, node) {
			continue
		}
		if v.answer.Placement != nil && v.answer.Placement.Node == node.Name {
			return node
		}
		if check := checkOn(ctx, v.Question, f, d, node); check > furthest {
			best, furthest = node, check
		}
	}
	for _, u := range v.Reach.Unsuitable {
		if best == nil && eligibility.DeviceReaches(d, u.Node) {
			best = u.Node
		}
	}
	return best
}

// checkOn returns the check that a device fails on a node, or one more than all.
func checkOn(ctx context.Context, q *eligibility.Question, f *eligibility.Funnel, d *cluster.Device, node *corev1.Node) eligibility.Check {
	check := eligibility.Reach
	for i := range q.Reach.Pools[node.Name] {
		pool := q.Reach.Pools[node.Name][i]
		if pool.Pool != d.Pool {
			continue
		}
		eligibility.EachDevice(pool, func(have *cluster.Device, r *eligibility.Reason) {
			if have.Device != d.Device {
				return
			}
			if r == nil {
				r = f.Checks.Device(ctx, have, node)
			}
			check = eligibility.Constraint + 1
			if r != nil {
				check = r.Check
			}
		})
	}
	return check
}

// pickedFor returns the request that the allocator gives a device to, empty if it does not
// pick the device.
func (v *view) pickedFor(d *cluster.Device) string {
	for _, c := range v.answer.Placement.Claims {
		for _, p := range c.Devices {
			if p.Driver == d.ID.Driver && p.Pool == d.ID.Pool && p.Device == d.ID.Device {
				return cluster.RequestTitle(p.Request, p.Container, p.ExtendedResource)
			}
		}
	}
	return ""
}

// placed lists what the allocator picks for a request.
func (v *view) placed(claim int, r *cluster.Request) []api.AllocatedDevice {
	if v.answer.Placement == nil {
		return nil
	}
	of := v.Claims[claim].Claim
	var list []api.AllocatedDevice
	for _, c := range v.answer.Placement.Claims {
		for _, p := range c.Devices {
			if c.Namespace == of.Namespace && c.Name == of.Name && p.Request == r.Name {
				list = append(list, p)
			}
		}
	}
	return list
}

// notPicked says why a device that passes every check is not picked, as far as
// that is known.
func (v *view) notPicked(ctx context.Context, claim int, f *eligibility.Funnel, d *cluster.Device, node *corev1.Node) string {
	alone := "passes every check alone"
	if v.device.HoldersUnknown != "" {
		alone = "passes alone every check that can be made"
	}
	placement, picks := v.answer.Placement, "the allocator"
	if v.answer.Verdict == api.Undetermined {
		picks = "as far as can be seen " + picks
	}
	switch {
	case v.answer.Verdict == api.Error:
		return alone + ", but scheduling fails with an error: " + v.summary
	case placement == nil, placement.Node != node.Name:
		for _, group := range v.answer.Nodes {
			if slices.Contains(group.Names, node.Name) && group.Message != "" {
				return fmt.Sprintf("%s, but on %s: %s", alone, node.Name, group.Message)
			}
		}
		if placement == nil {
			return alone
		}
		return fmt.Sprintf("%s, but %s picks %s", alone, picks, placement.Node)
	}
	if other := v.pickedFor(d); other != "" {
		return alone + ", and is picked for " + other
	}
	taken := v.placed(claim, f.Request)
	if len(taken) == 0 {
		return alone + ", but " + v.otherAlternative(ctx, claim, f, node)
	}
	names, before, binding := make([]string, 0, len(taken)), v.Cluster.Gates.Channel() != "stable", false
	position, last := positionOf(v.Question, d.ID, node.Name)
	for _, p := range taken {
		names = append(names, p.Device)
		at, late := positionOf(v.Question, cluster.DeviceID{Driver: p.Driver, Pool: p.Pool, Device: p.Device}, node.Name)
		before, binding = before && at < position, binding || late != last
	}
	text := fmt.Sprintf("%s, but %s takes %s", alone, picks, english.Sample(names, 4))
	if before {
		text += ": of those that fit it takes the first, in the order of pools, slices and devices"
	}
	if before && binding {
		text += "; pools with binding conditions, like this one, come last"
	}
	return text
}

// otherAlternative says why an alternative of a request is not taken. The
// allocator tries them in their order, until one will do.
func (v *view) otherAlternative(ctx context.Context, claim int, f *eligibility.Funnel, node *corev1.Node) string {
	alternatives := alternativesOf(v.Question, claim, f)
	taken := slices.IndexFunc(alternatives, func(other *eligibility.Funnel) bool { return len(v.placed(claim, other.Request)) > 0 })
	if taken < 0 {
		return "nothing is picked for the request"
	}
	text := fmt.Sprintf("the allocator takes %s instead", alternatives[taken].Request.Name)
	if taken < slices.Index(alternatives, f) {
		return text + ", which comes first"
	}
	if answer, short := advice.ShortOfOne(ctx, v.Question, f, node); short {
		return text + ": " + answer.Message
	}
	if len(v.Claims) > 1 || len(v.Claims[claim].Funnels) > 1 {
		return text + ": beside the devices of the other requests it finds none for this alternative"
	}
	return text + ": enough devices are available for this alternative, but no set of them that satisfies it"
}

// alternativesOf lists the alternatives that one belongs to.
func alternativesOf(q *eligibility.Question, claim int, f *eligibility.Funnel) []*eligibility.Funnel {
	for _, alternatives := range q.Claims[claim].Funnels {
		if slices.Contains(alternatives, f) {
			return alternatives
		}
	}
	return nil
}

// positionOf returns the position of a device in the order in which the allocator tries the
// devices of a node, and whether its pool is among the last ones.
func positionOf(q *eligibility.Question, id cluster.DeviceID, node string) (at int, last bool) {
	for _, pool := range q.Reach.Pools[node] {
		for i := range pool.Devices {
			if pool.Devices[i].ID == id {
				return at, pool.Last
			}
			at++
		}
	}
	return at, false
}

// conclude says in one clause what becomes of the device.
func (v *view) conclude() string {
	requests := v.device.Requests
	if len(requests) == 0 {
		for _, claim := range v.answer.Claims {
			if claim.Allocation != nil && slices.ContainsFunc(claim.Allocation.Devices, func(d api.AllocatedDevice) bool {
				return d.Driver == v.device.Driver && d.Pool == v.device.Pool && d.Device == v.device.Name
			}) {
				return fmt.Sprintf("allocated to claim %s", cmp.Or(claim.Name, claim.PodClaim))
			}
		}
		if v.answer.Verdict == api.Allocated {
			return "not evaluated: no request waits for devices"
		}
		return "not evaluated: " + v.summary
	}
	best := &requests[0]
	for i := range requests {
		if worth(&requests[i]) > worth(best) {
			best = &requests[i]
		}
	}
	v.device.Outcome = best.Outcome
	label := cluster.RequestTitle(best.Name, best.Container, best.ExtendedResource)
	switch best.Outcome {
	case api.Picked:
		text := "the allocator picks it for " + label
		if v.answer.Verdict == api.Undetermined {
			text = "as far as can be seen " + text
		}
		return text
	case api.Eligible:
		return label + ": " + best.Message
	default:
		text, also := label+": ", []string(nil)
		for _, check := range best.Checks {
			switch {
			case check.Outcome != api.CheckFailed:
			case also == nil:
				text += check.Label
				if check.Message != "" {
					text += " (" + check.Message + ")"
				}
				also = []string{}
			default:
				also = append(also, check.Label)
			}
		}
		if len(also) > 0 {
			text += "; it would also fail: " + english.JoinAnd(also)
		}
		return text
	}
}

// worth orders the requests by how well a device does: rejections by the number
// of checks that it gets through.
func worth(r *api.DeviceRequest) int {
	switch r.Outcome {
	case api.Picked:
		return len(r.Checks) + 2
	case api.Eligible:
		return len(r.Checks) + 1
	default:
		return slices.IndexFunc(r.Checks, func(c api.DeviceCheck) bool { return c.Outcome == api.CheckFailed })
	}
}
