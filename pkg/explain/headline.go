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

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// headlines say in one sentence why claims fit nowhere.
type headlines struct {
	*eligibility.Question
	// out is the answer so far; it is not changed.
	out       *api.Explanation
	target    *target.Target
	confirmer *verdict.Confirmer
	reasons   *advice.Reasons
}

// of returns the reason why the claims fit nowhere: the request, and why the nearest node
// cannot serve it. It is empty if that is not known.
func (h *headlines) of(ctx context.Context, list []*advice.Prospect) reason {
	if said := h.noDevices(); said != (reason{}) {
		return said
	}
	if text := h.byPlugin(); text != "" {
		return reason{what: text}
	}
	only := h.Cluster.Snapshot.Node(h.Reach.OnlyNode())
	if only != nil && len(h.Claims) > 0 && (len(list) == 0 || list[0].Node() != only) {
		return h.onlyNode(ctx, only)
	}
	if len(list) == 0 {
		return reason{}
	}
	causes := list[0].Causes()
	if said := h.ofCauses(ctx, list[0], causes); said != (reason{}) {
		return said
	}
	if text := h.noAttribute(); text != "" {
		return reason{what: text}
	}
	if text := h.apart(ctx, list); text != "" && only == nil {
		return reason{what: text}
	}
	p := list[0]
	if len(h.Claims) == 0 {
		return reason{what: h.strandedHeadline(p)}
	}
	answer, enough := h.devicesOf(ctx, p.Node(), p.Staying())
	if answer.Message == "" {
		return reason{}
	}
	decisive, decides := p.Decides()
	asked, has := asks(h.Question), advice.Answer.Has
	if decides && !enough && requestCount(h.Question) > 1 {
		asked = decisive.Text
		if !decisive.Count {
			has = func(a advice.Answer) string { return a.Message }
		}
	}
	who, there, brief := fmt.Sprintf("Node %s has", p.Node().Name), has(answer), ""
	if !enough {
		// The answer is that for a scenario, which may be another one than now.
		switch now := h.reasons.WhyNot(ctx, p.Node()); {
		case now.Message == answer.Message:
			who = h.nodesWithAnswer(p.Node(), who)
		case now.SaysMost():
			there = has(now)
		default:
			there = fmt.Sprintf("%s; %s, it has %s", has(now), h.released(p), has(answer))
		}
	}
	for _, cause := range causes {
		if enough || len(cause.Requirements) > 0 {
			continue
		}
		if passing, fits := h.devicesOf(ctx, p.Node(), cause.Alone); !fits && passing.Message != "" && !passing.SameRequest(answer) && !strings.Contains(there, has(passing)) {
			there += "; " + has(passing)
		}
	}
	if brief = there; there == has(answer) {
		brief = answer.Brief(there)
	}
	said := reason{detail: detailOf(h.out.Claims, answer.Code), brief: who + " " + brief}
	switch {
	case enough:
	case asked != asks(h.Question):
		said.needs = asked
	case answer.Code == api.ConstraintUnsatisfiable:
		said.needs = asksWith(h.Question, func(cluster.Constraint) string { return "" })
	default:
		said.needs = asksBriefly(h.Question, p.Node())
	}
	if decides && !enough && said.detail == (detail{}) && answer.Code == api.RequestSelectorFalse {
		said.detail = detailAbout(h.out.Claims, decisive.Evidence.Found)
	}
	said.what = fmt.Sprintf("%s. %s %s", asked, who, there)
	said.node = h.notSuitable(p.Node(), enough)
	return said
}

// ofCauses names the requirements that each keep the claims from fitting on the nearest
// node.
func (h *headlines) ofCauses(ctx context.Context, p *advice.Prospect, causes []advice.Cause) reason {
	if len(causes) < 2 {
		return reason{}
	}
	var asked, there, details []string
	for _, cause := range causes {
		var texts []string
		counted := false
		for _, required := range cause.Requirements {
			texts, counted = append(texts, required.Text), counted || required.Count
			if said := detailAbout(h.out.Claims, required.Evidence.Found); said.text != "" && !slices.Contains(details, said.text) {
				details = append(details, said.text)
			}
		}
		if len(texts) > 0 {
			asked = append(asked, english.JoinAnd(texts))
		}
		answer, enough := h.devicesOf(ctx, p.Node(), cause.Alone)
		has := answer.Message
		if !counted {
			// Alone, the cause asks for one device where the request asks for more.
			has = answer.Has()
		}
		if !enough && has != "" && !slices.Contains(there, has) {
			there = append(there, has)
		}
	}
	if len(asked) < 2 {
		return reason{}
	}
	return reason{
		brief: fmt.Sprintf("Node %s is ruled out by each of these: %s", p.Node().Name, strings.Join(asked, "; ")),
		what: fmt.Sprintf("%s. Each rules out node %s by itself%s", strings.Join(asked, ", and "), p.Node().Name,
			english.PrecededBy(": it has ", strings.Join(there, "; "))),
		detail: detail{text: strings.Join(details, "; ")},
		node:   h.notSuitable(p.Node(), false),
	}
}

// byPlugin says that a device plugin serves an extended resource where a class does not, and
// how much of it there is on either side.
func (h *headlines) byPlugin() string {
	nodes := eligibility.ByPlugin(h.Question)
	if len(nodes) == 0 {
		return ""
	}
	most, total := &nodes[0].Misfit, nodes[0].Node.Status.Allocatable[nodes[0].Misfit.Resource]
	var names []string
	for i := range nodes {
		if m := &nodes[i].Misfit; m.Resource == most.Resource {
			names = append(names, nodes[i].Node.Name)
			if m.Available.Cmp(most.Available) > 0 {
				most, total = m, nodes[i].Node.Status.Allocatable[m.Resource]
			}
		}
	}
	class := h.Cluster.Claims.ClassOf(most.Resource).Name
	text := fmt.Sprintf("the pod needs %s of %s on one node. A device plugin serves it on %s, with at most %s of %s available; the scheduler does not use DeviceClass %s where a device plugin serves the resource",
		most.Required.String(), most.Resource, english.Sample(names, 3), most.Available.String(), total.String(), class)
	best, on := 0, ""
	for i := range h.Claims {
		for _, f := range slices.Concat(h.Claims[i].Funnels...) {
			for _, node := range h.Reach.Candidates {
				if f.Request.Class == class && f.Eligible[node.Name] > best {
					best, on = f.Eligible[node.Name], node.Name
				}
			}
		}
	}
	if best > 0 {
		text += fmt.Sprintf(". That class has at most %d available, on node %s", best, on)
	}
	return text
}

// notSuitable returns what besides the devices keeps the pod from a node, as the end of a
// sentence about them; empty if nothing does.
func (h *headlines) notSuitable(node *corev1.Node, enough bool) string {
	var misfits []string
	for _, u := range h.Reach.Misfits[node.Name] {
		misfits = append(misfits, misfitText(u, h.Cluster.Snapshot, h.target.Hypothetical)+onNoNode(h.Question, u))
	}
	link := ", and"
	if enough {
		link = ", but"
	}
	return english.PrecededBy(link+" is not suitable: ", english.JoinAnd(misfits))
}

// onlyNode returns the reason why a pod does not fit on the only node that it selects,
// where that has no devices.
func (h *headlines) onlyNode(ctx context.Context, node *corev1.Node) reason {
	which := "the only one that the pod selects"
	if snapshot.DaemonNode(h.Pod) != "" {
		which = "for which the DaemonSet has created the pod"
	}
	has := fmt.Sprintf("Node %s, %s, has %s", node.Name, which, h.reasons.WhyNot(ctx, node).Has())
	return reason{
		what: fmt.Sprintf("%s. %s", asks(h.Question), has), brief: has, needs: asksBriefly(h.Question, node),
		node: h.notSuitable(node, false),
	}
}

// nodesWithAnswer names the nodes that have the same answer as a node, which is the nearest
// one, or is what to say of it alone.
func (h *headlines) nodesWithAnswer(node *corev1.Node, alone string) string {
	group := &h.out.Nodes[0]
	if i := slices.IndexFunc(group.Parts, func(part api.NodeGroup) bool { return slices.Contains(part.Names, node.Name) }); i >= 0 {
		// The other nodes of the group have other numbers of devices.
		group = &group.Parts[i]
	}
	switch {
	case group.Count == 1, len(group.Parts) > 0, len(h.Reach.Misfits[node.Name]) > 0, !slices.Contains(group.Names, node.Name):
		return alone
	case group.Count == h.out.NodeCount:
		return fmt.Sprintf("All %d nodes have", group.Count)
	default:
		return fmt.Sprintf("Node %s and %s have", node.Name, english.Count(group.Count-1, "more node"))
	}
}

// onNoNode says that no node has what the pod needs of one, if so.
func onNoNode(asked *eligibility.Question, u eligibility.UnsuitableNode) string {
	if u.Misfit.Filter == cluster.FilterNodeSelector {
		if slices.ContainsFunc(asked.Cluster.Snapshot.Nodes, func(node *corev1.Node) bool { return node.Labels[u.Misfit.Label] == u.Misfit.Wanted }) {
			return ""
		}
		return " (no node has it)"
	}
	if u.Misfit.Filter != cluster.FilterResources || u.Misfit.Required.Cmp(u.Misfit.Allocatable) <= 0 {
		return ""
	}
	most := u.Misfit.Allocatable
	for _, node := range asked.Cluster.Snapshot.Nodes {
		if q := node.Status.Allocatable[u.Misfit.Resource]; q.Cmp(most) > 0 {
			most = q
		}
	}
	if u.Misfit.Required.Cmp(most) <= 0 {
		return ""
	}
	return fmt.Sprintf(" (no node is that large; the largest has %s)", selector.SizeText(most))
}

// asks says what the claims ask for.
func asks(q *eligibility.Question) string { return asksWith(q, cluster.Constraint.String) }

// asksBriefly is like asks, with attributes as briefly as answers about the node have them.
func asksBriefly(q *eligibility.Question, node *corev1.Node) string {
	return asksWith(q, func(c cluster.Constraint) string { return advice.Briefly(q, node, c) })
}

// asksWith is like asks, with constraints in other words or, for empty ones, without them.
func asksWith(q *eligibility.Question, say func(cluster.Constraint) string) string {
	var parts []string
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			if len(alternatives) == 0 {
				continue
			}
			parts = append(parts, eligibility.RequestTitle(q, i, alternatives[0].Request.Base)+" needs "+neededText(alternatives))
		}
		if len(parts) == 0 {
			continue
		}
		for _, c := range cluster.Constraints(q.Claims[i].Claim) {
			parts[len(parts)-1] += english.PrecededBy(" with ", say(c))
		}
	}
	const most = 3
	if len(parts) > most {
		return fmt.Sprintf("%d requests need devices on one node", len(parts))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "on one node, " + english.JoinAnd(parts)
}

func requestCount(q *eligibility.Question) int {
	count := 0
	for i := range q.Claims {
		count += len(q.Claims[i].Funnels)
	}
	return count
}

// neededText says how many devices a request needs, alternative by alternative.
func neededText(alternatives []*eligibility.Funnel) string {
	var texts []string
	for _, f := range alternatives {
		text := "all devices that match"
		if !f.Request.All() {
			text = english.Count(int(min(f.Request.Count, 1<<30)), "device")
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return english.JoinOr(texts)
}

// devicesOf says which devices a node has for the claims, whatever else keeps the pod away
// from it. Enough reports whether these are all that is needed.
//
// If they are not, the answer is for what is left of the node: where all that may pass and
// is not a part of the conflict has passed, that is the condition that stays.
func (h *headlines) devicesOf(ctx context.Context, node *corev1.Node, left advice.Hypothesis) (answer advice.Answer, enough bool) {
	amended := h.Cluster.Amended(left.Snap)
	one, err := verdict.QuestionOnNode(ctx, h.Question, amended, node, left.Claims)
	if err != nil {
		return advice.Answer{}, false
	}
	if fits, err := h.confirmer.Fits(ctx, h.Question, amended, node, left.Claims); err == nil && fits {
		return advice.Answer{Message: availableText(one, node)}, true
	}
	return advice.NewReasons(one, nil, &verdict.Confirmer{}).WhyNot(ctx, node), false
}

// released says which claims are released in that scenario, and that taints are gone.
func (h *headlines) released(p *advice.Prospect) string {
	var kept []string
	for _, claim := range p.Staying().Snap.Claims {
		own := slices.ContainsFunc(h.PodClaims, func(pc cluster.PodClaim) bool {
			return pc.Claim != nil && pc.Claim.Namespace == claim.Namespace && pc.Claim.Name == claim.Name
		})
		if own || claim.Status.Allocation == nil {
			continue
		}
		if slices.ContainsFunc(h.Reach.Pools[p.Node().Name], func(pool *cluster.NodePool) bool {
			return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
				return r.Driver == pool.Pool.Driver && r.Pool == pool.Pool.Name
			})
		}) {
			kept = append(kept, claim.Namespace+"/"+claim.Name)
		}
	}
	const most = 3
	claims, taints := p.Passed()
	without := ""
	if taints {
		without = " and without the taints of its devices"
	}
	switch {
	case taints && !claims && len(kept) == 0:
		return "even without the taints of its devices"
	case len(kept) == 0:
		return "even after all other claims are released" + without
	case len(kept) > most:
		return fmt.Sprintf("even after all claims but %s and %d more are released", strings.Join(kept[:most], ", "), len(kept)-most) + without
	default:
		return fmt.Sprintf("even after all claims but %s are released", english.JoinAnd(kept)) + without
	}
}

// availableText says how many devices a node has for each request.
func availableText(q *eligibility.Question, node *corev1.Node) string {
	if len(q.Claims) == 1 && len(q.Claims[0].Funnels) == 1 && len(q.Claims[0].Funnels[0]) == 1 {
		return fmt.Sprintf("%d available", q.Claims[0].Funnels[0][0].Eligible[node.Name])
	}
	return "the devices for all requests"
}

// strandedHeadline returns the headline for a pod whose claims have their devices.
func (h *headlines) strandedHeadline(p *advice.Prospect) string {
	var texts []string
	for _, u := range h.Reach.Misfits[p.Node().Name] {
		texts = append(texts, misfitText(u, h.Cluster.Snapshot, h.target.Hypothetical))
	}
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("the devices are allocated, but no node is suitable for the pod. Node %s: %s", p.Node().Name, strings.Join(texts, ", and "))
}

// noDevices says that there is no device of a class anywhere: then it does not
// matter what else keeps nodes from being used.
func (h *headlines) noDevices() reason {
	if h.Cluster.Snapshot.Gap(snapshot.ResourceSlices) != nil || h.target.Only != nil || h.out.NodeCount == 0 {
		return reason{}
	}
	for i := range h.Claims {
		for j, alternatives := range h.Claims[i].Funnels {
			if len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(f *eligibility.Funnel) bool { return f.ClassHasDevices }) ||
				h.PodClaims[h.Claims[i].Index].ExtendedResources {
				continue
			}
			var classes []string
			for _, f := range alternatives {
				if !slices.Contains(classes, f.Request.Class) {
					classes = append(classes, f.Request.Class)
				}
			}
			text := fmt.Sprintf("no node has devices of class %s, which request %s needs", english.JoinOr(classes), alternatives[0].Request.Base)
			if len(h.Cluster.Snapshot.Slices) == 0 {
				return reason{what: text + ": there are no ResourceSlices, so no driver has published any device"}
			}
			return reason{what: text, detail: h.classHint(i, j)}
		}
	}
	return reason{}
}

// noAttribute says that no device has the attribute of a constraint, so that no device can
// be used for a request.
func (h *headlines) noAttribute() string {
	if h.Cluster.Snapshot.Gap(snapshot.ResourceSlices) != nil || h.target.Only != nil || h.out.NodeCount == 0 {
		return ""
	}
	for i := range h.Claims {
		for _, alternatives := range h.Claims[i].Funnels {
			for _, c := range cluster.Constraints(h.Claims[i].Claim) {
				missing := func(f *eligibility.Funnel) bool {
					return c.AppliesTo(f.Request) && f.Checks.MissingEverywhere(c.Attribute)
				}
				if len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(f *eligibility.Funnel) bool { return !missing(f) }) {
					continue
				}
				what := "must be the same for all devices"
				if c.Distinct {
					what = "must differ from device to device"
				}
				f := alternatives[0]
				return fmt.Sprintf("no device has the attribute %s, which %s of %s%s",
					c.Attribute, what, eligibility.RequestTitle(h.Question, i, f.Request.Base), f.Checks.NearAttribute(c.Attribute))
			}
		}
	}
	return ""
}

// classHint returns what the class of a request was probably meant to select.
func (h *headlines) classHint(claim, request int) detail {
	for _, f := range h.Claims[claim].Funnels[request] {
		for _, r := range h.out.Claims[h.Claims[claim].Index].Requests {
			if r.Name != f.Request.Name {
				continue
			}
			for _, rejection := range r.Rejected {
				if rejection.Code == api.ClassSelectorFalse && rejection.Hint != "" {
					return detail{text: rejection.Hint, noDriver: rejection.HintDriver}
				}
			}
		}
	}
	return detail{}
}

// apart says which nodes have devices for which request, where each request has
// some and no node has them for all, whichever claims use them now.
func (h *headlines) apart(ctx context.Context, list []*advice.Prospect) string {
	if h.target.Only != nil || requestCount(h.Question) < 2 {
		return ""
	}
	type served struct {
		name  string
		nodes []string
	}
	var all []served
	common := map[*advice.Prospect]int{}
	for i := range h.Claims {
		if h.PodClaims[h.Claims[i].Index].ExtendedResources {
			return ""
		}
		for _, alternatives := range h.Claims[i].Funnels {
			if len(alternatives) == 0 {
				continue
			}
			s := served{name: alternatives[0].Request.Base}
			if len(h.Claims) > 1 && h.Claims[i].Claim.Name != "" {
				s.name = cluster.ClaimTitle(h.Claims[i].Claim) + "." + s.name
			}
			for _, p := range list {
				if slices.ContainsFunc(alternatives, func(f *eligibility.Funnel) bool { return advice.Enough(ctx, h.Question, f, p.Node()) }) {
					common[p]++
					for _, node := range p.Nodes {
						s.nodes = append(s.nodes, node.Name)
					}
				}
			}
			if len(s.nodes) == 0 {
				return ""
			}
			all = append(all, s)
		}
	}
	if len(all) < 2 {
		return ""
	}
	for _, count := range common {
		if count == len(all) {
			return ""
		}
	}
	var parts []string
	for _, s := range all {
		slices.SortFunc(s.nodes, english.CompareNames)
		parts = append(parts, fmt.Sprintf("%s is available only on %s", s.name, english.Sample(s.nodes, 3)))
	}
	const most = 4
	if len(parts) > most {
		parts = append(parts[:most], fmt.Sprintf("%d more requests", len(all)-most))
	}
	return "no node has the devices of all requests: " + strings.Join(parts, ", ")
}

// nominated says that the scheduler has preempted pods for this one, if so.
func (h *headlines) nominated(ctx context.Context) string {
	pod := h.Pod
	if pod == nil || pod.Status.NominatedNodeName == "" || h.Reach.Pools == nil {
		return ""
	}
	name := pod.Status.NominatedNodeName
	for _, u := range h.Reach.Misfits[name] {
		if u.Misfit.Filter != cluster.FilterResources && u.Misfit.Filter != cluster.FilterPods && u.Misfit.Filter != cluster.FilterPorts {
			return ""
		}
	}
	node := h.Cluster.Snapshot.Node(name)
	if node == nil {
		return ""
	}
	claims, err := h.ClaimsFor(node)
	if err != nil {
		return ""
	}
	if fits, err := h.confirmer.Fits(ctx, h.Question, h.Cluster, node, claims); err != nil || !fits {
		return ""
	}
	return fmt.Sprintf("node %s is nominated for the pod: the scheduler is preempting pods of lower priority there, and devices for the claims are available. Nothing has to change", name)
}

// misfitText says why the pod cannot use a node, with the numbers.
func misfitText(u eligibility.UnsuitableNode, snap *snapshot.Snapshot, hypothetical bool) string {
	if u.Misfit.Filter == cluster.FilterNodeName && !hypothetical {
		return "the pod is bound to node " + u.Misfit.Wanted
	}
	return u.Misfit.Text(snap)
}

// detailOf returns what the funnel says about a code, where a number alone tells too
// little: nothing if several rejections have the code, or one of devices that require
// different things.
func detailOf(claims []api.ClaimExplanation, code api.Code) detail {
	switch code {
	case api.ClassSelectorFalse, api.RequestSelectorFalse, api.CapacityInsufficient, api.CountersExhausted, api.PoolIncomplete, api.PoolInvalid, api.DeviceTainted:
	default:
		return detail{}
	}
	var found *api.Rejection
	for _, claim := range claims {
		for _, r := range claim.Requests {
			for i := range r.Rejected {
				if r.Rejected[i].Code != code {
					continue
				}
				if found != nil {
					return detail{}
				}
				found = &r.Rejected[i]
			}
		}
	}
	switch {
	case found == nil:
		return detail{}
	case code == api.CountersExhausted && slices.ContainsFunc(found.Evidence, func(fact api.Evidence) bool { return fact.Required != found.Evidence[0].Required }):
		return detail{}
	case code == api.ClassSelectorFalse:
		return detail{text: found.Hint, noDriver: found.HintDriver}
	case code == api.DeviceTainted:
		return detail{text: "the taint is " + found.Message}
	default:
		return detail{text: found.Message}
	}
}

// detailAbout returns what the funnel says about a part of a selector.
func detailAbout(claims []api.ClaimExplanation, part string) detail {
	for _, claim := range claims {
		for _, r := range claim.Requests {
			for i := range r.Rejected {
				if rejected := &r.Rejected[i]; rejected.Code == api.RequestSelectorFalse && len(rejected.Evidence) > 0 && rejected.Evidence[0].Required == part {
					return detail{text: rejected.Message}
				}
			}
		}
	}
	return detail{}
}
