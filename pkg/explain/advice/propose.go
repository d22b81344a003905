// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// proposals are changes that were tried with the allocator.
type proposals struct {
	*Case
	// scenario is the node that is looked at; nil if there is none.
	scenario *Scenario
	found    []remedy
	// made are changes of another case that have led to this one, from.
	from *proposals
	made []change
	// vain is how often the allocator did not end.
	vain int
}

// remedy is a change that was verified.
type remedy struct {
	change
	api.Remedy
}

// propose keeps a change if the allocator then finds devices. It reports whether
// it did, and fails if there is no time left.
func (p *proposals) propose(ctx context.Context, c change) (bool, error) {
	if slices.ContainsFunc(p.found, func(have remedy) bool { return have.text == c.text }) {
		return true, nil
	}
	answer, err := p.ask(ctx, c)
	if err != nil {
		return false, ctx.Err()
	}
	if answer == nil {
		return false, ctx.Err()
	}
	answer.Actor, answer.Change = c.actor, c.text+p.taken(c, answer)
	p.Complete(answer, c.silent)
	p.found = append(p.found, remedy{c, *answer})
	return true, nil
}

// proposeAll proposes changes one after the other.
func (p *proposals) proposeAll(ctx context.Context, list []change) error {
	for _, c := range list {
		if _, err := p.propose(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// taken says what requests take that no longer say how much of a capacity, as the end of a
// sentence: the default of the driver, or all.
func (p *proposals) taken(c change, answer *api.Remedy) string {
	var texts []string
	for _, at := range c.unbounded {
		for i := range answer.Devices {
			d := &answer.Devices[i]
			if d.Request != at.in(p.waiting()).name || slices.ContainsFunc(texts, func(have string) bool { return strings.HasSuffix(have, "of "+d.Device) }) {
				continue
			}
			parts := make([]string, 0, len(d.ConsumedCapacity))
			for _, name := range slices.Sorted(maps.Keys(d.ConsumedCapacity)) {
				parts = append(parts, d.ConsumedCapacity[name]+" "+name)
			}
			texts = append(texts, cmp.Or(english.JoinAnd(parts), "all")+" of "+d.Device)
		}
	}
	return english.PrecededBy(": it then takes ", english.JoinAnd(texts))
}

// ask puts the whole question again, with a change made: about all nodes that
// would take the pod. The answer is nil unless the claims fit on one of them
// and no node ends the attempt.
func (p *proposals) ask(ctx context.Context, c change) (*api.Remedy, error) {
	answer := &api.Remedy{Edits: p.editsOf(c), FeatureGate: c.gate, Devices: []api.AllocatedDevice{}}
	q, err := p.changed(c)
	if err != nil || q == nil {
		return nil, err
	}
	nodes := q.Reach.Candidates
	if p.scenario != nil && p.Devices == api.DoesNotFit && len(c.objects) == 0 && c.gate == "" && !c.anywhere && slices.Contains(nodes, p.scenario.node) {
		// Most of what does not help is found out here. It tells nothing where an
		// error has kept the other nodes from being tried.
		if verdict := p.verdicts(ctx, q, 2, p.scenario.node)[0]; verdict.Outcome != allocator.Fits {
			return nil, ctx.Err()
		}
	}
	if counted := p.Recounted(q); counted != nil && p.Devices == api.DoesNotFit {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool { return verdict.TooFewDevices(ctx, counted, node) })
	}
	contents := p.Contents
	if q.Cluster != p.Cluster {
		contents = p.Contents.Amended()
	}
	groups := contents.Groups(q, nodes)
	asked := make([]*corev1.Node, 0, len(groups))
	for _, group := range groups {
		at := 0
		if p.scenario != nil {
			// The node that is talked about stands for its like.
			at = max(0, slices.IndexFunc(group, func(n *corev1.Node) bool { return n.Name == p.scenario.node.Name }))
		}
		asked = append(asked, group[at])
	}
	best := -1
	verdicts := p.verdicts(ctx, q, 1, asked...)
	for i, verdict := range verdicts {
		switch verdict.Outcome {
		case allocator.Fits:
			if q.Cluster.MapsNodeResources(verdict.Allocations) {
				continue
			}
			answer.Nodes += len(groups[i])
			if best < 0 || p.scenario != nil && asked[i].Name == p.scenario.node.Name {
				best = i
			}
		case allocator.DoesNotFit, allocator.NodeError:
		default:
			return nil, ctx.Err()
		}
	}
	if best < 0 {
		return nil, ctx.Err()
	}
	answer.Node = asked[best].Name
	for i := range verdicts[best].Allocations {
		answer.Devices = append(answer.Devices, eligibility.PickedDevices(q.Pod, q.Claims[i].Claim, &verdicts[best].Allocations[i])...)
	}
	return answer, nil
}

// minSearchSteps is the rest of SearchSteps where they are often not enough.
const minSearchSteps = verdict.SearchSteps / 16

// StepsOfNodes returns what the allocator takes for so many nodes where it has little to
// search: some thousand steps for a node with ten devices of two classes. A budget without
// it would depend on the size of the cluster, and not on how hard the question is.
func StepsOfNodes(nodes int) int64 { return int64(nodes) * 10_000 }

// verdicts asks the allocator about nodes where counting does not say that nothing
// fits. Beside the steps that each node takes anyway, it may take a part of
// SearchSteps, and half as many after each time that they were not enough.
func (p *proposals) verdicts(ctx context.Context, q *eligibility.Question, part int64, nodes ...*corev1.Node) []allocator.NodeVerdict {
	steps := max(int64(verdict.SearchSteps)>>p.vain, minSearchSteps)/part + StepsOfNodes(len(nodes))
	limited, budget := allocator.WithBudget(ctx, steps)
	defer budget.End()
	verdicts, _ := verdict.CheckUnless(limited, q, nodes, func(ctx context.Context, node *corev1.Node) bool { return verdict.IsHardAlone(ctx, q, node) })
	if budget.Spent() {
		p.vain++
	}
	return verdicts
}

// changed returns the question with a change made, up to the point where the allocator is
// asked. It is nil if something else is in the way already.
func (p *proposals) changed(c change) (*eligibility.Question, error) {
	w := verdict.WhatIf{Features: c.gate != "", Claims: map[int][]api.Edit{}}
	for _, e := range c.claims {
		at := p.Claims[e.claim].Index
		w.Claims[at] = append(w.Claims[at], whatif.NewEdit(api.ObjectRef{}, e.op, e.path, e.value))
	}
	if len(c.objects) > 0 || c.gate != "" {
		of, gates := p.Cluster.Snapshot, []string(nil)
		if p.local(c) {
			of = p.scenario.snap
		} else {
			w.FindAgain = true
		}
		if c.gate != "" {
			gates = append(gates, c.gate)
		}
		changed, err := whatif.Amend(of, c.objects, gates...)
		if err != nil {
			return nil, err
		}
		w.Cluster = p.Cluster.Amended(changed)
	}
	return p.Again(w)
}

// local reports whether a change concerns only the node of the scenario: the node
// itself is changed, a pod leaves it, or claims are released whose devices no
// other node can reach. Then the other nodes, where the claims did not fit, need
// not be asked again.
func (p *proposals) local(c change) bool {
	if p.scenario == nil || p.Devices != api.DoesNotFit || c.gate != "" || len(c.objects) == 0 || len(c.claims) > 0 || dependsOnPodsElsewhere(p.Question) {
		return false
	}
	for _, e := range c.objects {
		namespace, name := e.Object.Namespace, e.Object.Name
		switch e.Object.Kind {
		case api.KindNode:
			if name != p.scenario.node.Name {
				return false
			}
			continue
		case api.KindPod:
			if pod := p.Cluster.Snapshot.Pod(namespace, name); e.Op != "remove" || e.Path != "" || pod == nil || pod.Spec.NodeName != p.scenario.node.Name {
				return false
			}
			continue
		}
		claim := p.Cluster.Snapshot.Claim(namespace, name)
		if e.Object.Kind != api.KindClaim || e.Path != "/status/allocation" || claim == nil {
			return false
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			at := slices.IndexFunc(p.Reach.Pools[p.scenario.node.Name], func(p *cluster.NodePool) bool {
				return p.Pool.Driver == result.Driver && p.Pool.Name == result.Pool
			})
			if at < 0 {
				return false
			}
			for _, slice := range p.Reach.Pools[p.scenario.node.Name][at].Pool.Slices {
				if ptr.Deref(slice.Spec.NodeName, "") != p.scenario.node.Name {
					return false
				}
			}
		}
	}
	return true
}

// editsOf lists the edits of stored objects that make a change. A claim that
// was made from a template is edited with it.
func (p *proposals) editsOf(c change) []api.Edit {
	var edits []api.Edit
	// editedFor has the first claim for which a template is edited: it is edited once.
	type field struct {
		object api.ObjectRef
		path   string
	}
	editedFor := map[field]int{}
	for _, e := range c.claims {
		claim, template := p.Claims[e.claim].Claim, p.PodClaims[p.Claims[e.claim].Index].Template
		fromTemplate := template != "" && p.Cluster.Snapshot.Template(claim.Namespace, template) != nil
		if fromTemplate {
			edit := whatif.NewEdit(api.Ref(api.KindTemplate, claim.Namespace, template), e.op, "/spec/spec"+e.path, e.value)
			at := field{edit.Object, edit.Path}
			if first, edited := editedFor[at]; !edited || first == e.claim {
				editedFor[at] = e.claim
				edits = append(edits, edit)
			}
		}
		if !fromTemplate || p.Cluster.Snapshot.Claim(claim.Namespace, claim.Name) != nil {
			edit := whatif.NewEdit(api.RefTo(api.KindClaim, claim), e.op, "/spec"+e.path, e.value)
			edit.Generated = fromTemplate
			edits = append(edits, edit)
		}
	}
	return append(edits, c.objects...)
}

// fit reports whether changed claims fit on the scenario's node.
func (p *proposals) fit(ctx context.Context, edits ...claimEdit) bool {
	q, err := p.changed(change{claims: edits})
	if err != nil || q == nil {
		return false
	}
	return p.verdicts(ctx, q, 4, p.scenario.node)[0].Outcome == allocator.Fits
}

// most finds the largest number below high with which edits help; 0 if there is none.
func most(ctx context.Context, high int64, with func(int64) []claimEdit, fits func(context.Context, ...claimEdit) bool) int64 {
	low := int64(0)
	for high-low > 1 {
		if count := (low + high) / 2; fits(ctx, with(count)...) {
			low = count
		} else {
			high = count
		}
	}
	return low
}

// remedies looks for changes that make the claims fit.
type remedies struct {
	*proposals
	// conflict has a minimal set of facts of the scenario that cannot all hold.
	conflict []int
}
