// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Limits of the search where nothing fits, for nodes that differ for the claims.
const (
	// maxKinds limits how many of them are decided.
	maxKinds = 512
	// maxReasons is on how many it is found out why.
	maxReasons = 8
	// maxUndecided is on how many neither counting nor the allocator may come to an
	// end.
	maxUndecided = 2
	// errorSteps bounds the search for a node where the allocator fails: a second.
	errorSteps = 10_000_000
)

// decide looks for a node where the claims fit. With empty, taints, cordoned nodes
// and other pods are ignored.
func (a *amended) decide(ctx context.Context, empty bool) (api.Prospect, error) {
	d := api.Prospect{Verdict: api.DoesNotFit}
	nodes, dependent := a.candidates(empty)
	kinds := a.kinds(nodes)
	undecided := 0
	for i, node := range kinds {
		if i == maxKinds || undecided == maxUndecided {
			d.Verdict, d.Message = api.Undetermined, fmt.Sprintf("%d of %s that differ were tried", i, english.Count(len(kinds), "node"))
			return d, nil
		}
		fits, err := a.fits(ctx, node, empty)
		switch {
		case ctx.Err() != nil:
			return d, ctx.Err()
		case err != nil:
			undecided++
			d.Verdict, d.Node, d.Message = api.Undetermined, node.Name, "the search on the node did not end"
		case fits:
			return a.fitting(ctx, node, kinds, empty), ctx.Err()
		}
	}
	if d.Verdict == api.Undetermined {
		return d, nil
	}
	dependent = a.kinds(dependent)
	for _, node := range dependent[:min(len(dependent), maxReasons)] {
		if fits, err := a.fits(ctx, node, empty); err == nil && fits {
			return api.Prospect{
				Verdict: api.Undetermined, Code: api.NodeUnsuitable, Node: node.Name,
				Message: "it depends on where other pods are then: " + a.q.Reach.Misfits[node.Name][0].Misfit.Reason,
			}, nil
		}
	}
	return a.notFitting(ctx, kinds, empty), ctx.Err()
}

// candidates returns the nodes that are suitable for the pod, and the nodes whose
// suitability depends on where other pods are.
func (a *amended) candidates(empty bool) (nodes, dependent []*corev1.Node) {
	nodes = slices.Clone(a.q.Reach.Candidates)
	for _, u := range a.q.Reach.Unsuitable {
		depends, passes := false, true
		for _, other := range a.q.Reach.Misfits[u.Node.Name] {
			switch m := &other.Misfit; {
			case other.Claim != nil:
				passes = false
			case dependsOnPods(m):
				depends = true
			default:
				passes = passes && empty && m.PassesWhenEmpty()
			}
		}
		switch {
		case !passes:
		case depends:
			dependent = append(dependent, u.Node)
		default:
			nodes = append(nodes, u.Node)
		}
	}
	return nodes, dependent
}

func dependsOnPods(m *cluster.Misfit) bool {
	return m.Filter == cluster.FilterSpread || m.Filter == cluster.FilterPodAffinity
}

// kinds returns one of each set of nodes that are equivalent: those first that come close,
// then those with many devices.
func (a *amended) kinds(nodes []*corev1.Node) []*corev1.Node {
	rank := func(node *corev1.Node) int {
		if at := slices.Index(a.Near, node.Name); at >= 0 {
			return at
		}
		return len(a.Near)
	}
	var kinds []*corev1.Node
	for _, group := range a.equivalent(nodes) {
		kinds = append(kinds, slices.MinFunc(group, func(a, b *corev1.Node) int { return cmp.Compare(rank(a), rank(b)) }))
	}
	devices := func(node *corev1.Node) int {
		n := 0
		for _, pool := range a.q.Reach.Pools[node.Name] {
			n += len(pool.Devices)
		}
		return n
	}
	slices.SortStableFunc(kinds, func(a, b *corev1.Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(devices(b), devices(a)))
	})
	return kinds
}

// equivalent puts nodes together that have the same.
func (a *amended) equivalent(nodes []*corev1.Node) [][]*corev1.Node {
	if a.contents == nil {
		a.contents = a.Contents.Amended()
	}
	return a.contents.Groups(a.q, nodes)
}

// claimsFor returns the claims to allocate on a node.
func (a *amended) claimsFor(node *corev1.Node, empty bool) ([]*resourceapi.ResourceClaim, error) {
	claims, err := a.q.ClaimsFor(node)
	if err == nil && empty {
		claims = tolerant(claims)
	}
	return claims, err
}

// fits asks the allocator about a node.
func (a *amended) fits(ctx context.Context, node *corev1.Node, empty bool) (bool, error) {
	claims, err := a.claimsFor(node, empty)
	if err != nil {
		return false, nil //nolint:nilerr // the pod cannot use the node
	}
	return a.Confirmer.Fits(ctx, a.q, a.q.Cluster, node, claims)
}

// fitting returns the answer where the allocator finds devices on a node. On others it may
// fail, which ends the attempt for all.
func (a *amended) fitting(ctx context.Context, node *corev1.Node, kinds []*corev1.Node, empty bool) api.Prospect {
	p := api.Prospect{Verdict: api.Fits, Node: node.Name}
	if a.mapsNodeResources(node) {
		p.Verdict, p.Code = api.Undetermined, api.NodeUnsuitable
		p.Message = "its devices stand for resources of the node like cpu, of which it is not evaluated whether enough are left"
		return p
	}
	others := slices.DeleteFunc(slices.Clone(kinds[:min(len(kinds), maxKinds)]), func(other *corev1.Node) bool {
		return other == node || verdict.IsHardAlone(ctx, a.q, other)
	})
	limited, budget := allocator.WithBudget(ctx, errorSteps)
	defer budget.End()
	verdicts := allocator.Of(a.q.Cluster).CheckAll(limited, others, func(node *corev1.Node) ([]*resourceapi.ResourceClaim, error) { return a.claimsFor(node, empty) })
	for i := range verdicts {
		if verdicts[i].Outcome == allocator.Failed {
			p.Verdict, p.Node = api.Undetermined, others[i].Name
			p.Message = "the allocator fails there, which ends the attempt for all nodes: " + eligibility.WithoutPlannedClaims(a.q, english.OneLine(verdicts[i].Err))
		}
	}
	return p
}

func (a *amended) mapsNodeResources(node *corev1.Node) bool {
	return a.q.Cluster.Gates.Enabled(cluster.GateNodeAllocatable) &&
		slices.ContainsFunc(a.q.Reach.Pools[node.Name], func(pool *cluster.NodePool) bool {
			return slices.ContainsFunc(pool.Devices, func(d cluster.Device) bool { return len(d.NodeAllocatableResources) > 0 })
		})
}

// notFitting returns the answer where nothing fits: why not on the node that comes nearest.
// It is not known if devices may be missing in what was read.
func (a *amended) notFitting(ctx context.Context, kinds []*corev1.Node, empty bool) api.Prospect {
	p := api.Prospect{Verdict: api.DoesNotFit}
	var nearest *Answer
	for _, node := range kinds[:min(len(kinds), maxReasons)] {
		one, err := a.on(ctx, node, empty)
		if err != nil {
			continue
		}
		if answer := NewReasons(one, nil, a.Confirmer).WhyNot(ctx, node); nearest == nil || answer.Nearer(*nearest) < 0 {
			nearest, p.Node = &answer, node.Name
		}
	}
	if nearest != nil {
		p.Code, p.Message = nearest.Code, nearest.Message
	} else {
		p.Code, p.Node, p.Message = a.unsuitable(empty)
	}
	for _, resource := range []string{snapshot.ResourceSlices, snapshot.ResourceNodes} {
		if gap := a.Cluster.Snapshot.Gap(resource); gap != nil {
			p.Verdict = api.Undetermined
			p.Message += "; " + gap.Reason
			return p
		}
	}
	if pool := a.incomplete(kinds); pool != nil && empty {
		p.Verdict, p.Code = api.Undetermined, api.PoolIncomplete
		p.Message = fmt.Sprintf("%s; the allocator does not use pool %s/%s: %s", p.Message, pool.Pool.Driver, pool.Pool.Name, eligibility.PoolReason(pool).Alone())
	}
	return p
}

// unsuitable returns why the pod cannot use the node from which the least keeps it away.
func (a *amended) unsuitable(empty bool) (code api.Code, name, message string) {
	code, message = api.NodeUnsuitable, "no node is suitable for the pod"
	var best *cluster.Misfit
	fewest := 0
	for _, u := range a.q.Reach.Unsuitable {
		var first *cluster.Misfit
		count := 0
		for i := range a.q.Reach.Misfits[u.Node.Name] {
			if m := &a.q.Reach.Misfits[u.Node.Name][i].Misfit; !empty || !m.PassesWhenEmpty() {
				first = cmp.Or(first, m)
				count++
			}
		}
		if len(a.q.Reach.Pools[u.Node.Name]) == 0 {
			// It has no devices either.
			count++
		}
		if first == nil || best != nil && (count > fewest || count == fewest && first.Allocatable.Cmp(best.Allocatable) <= 0) {
			continue
		}
		best, fewest, code, name, message = first, count, u.Code, u.Node.Name, first.Reason
		if first.Filter == cluster.FilterResources {
			message = fmt.Sprintf("%s: %s required, the node has %s", first.Reason, selector.SizeText(first.Required), selector.SizeText(first.Allocatable))
		}
	}
	return code, name, message
}

// on returns the question about one node.
func (a *amended) on(ctx context.Context, node *corev1.Node, empty bool) (*eligibility.Question, error) {
	one := *a.q
	one.Reach = &eligibility.PodReach{
		Candidates: []*corev1.Node{node}, Misfits: map[string][]eligibility.UnsuitableNode{},
		Pools: map[string][]*cluster.NodePool{node.Name: a.q.Reach.Pools[node.Name]},
	}
	one.Claims = slices.Clone(a.q.Claims)
	for i := range one.Claims {
		claim := &one.Claims[i]
		claim.Funnels = nil
		if empty {
			claim.Claim = tolerant([]*resourceapi.ResourceClaim{claim.Claim})[0]
		}
		if err := one.AddFunnels(ctx, claim, node); err != nil {
			return nil, err
		}
	}
	return &one, nil
}

// incomplete returns a pool that the allocator does not use as it is published, of a driver
// with devices of the classes that are asked for.
func (a *amended) incomplete(kinds []*corev1.Node) *cluster.NodePool {
	for _, node := range kinds {
		for _, pool := range a.q.Reach.Pools[node.Name] {
			if eligibility.PoolReason(pool) != nil && a.asksFor(pool.Pool.Driver) {
				return pool
			}
		}
	}
	return nil
}

// asksFor reports whether a driver has devices of a class that is asked for, or
// none that could be looked at.
func (a *amended) asksFor(driver string) bool {
	others := false
	for i := range a.Claims {
		for _, f := range slices.Concat(a.Claims[i].Funnels...) {
			for j := range f.Devices {
				switch d := &f.Devices[j]; {
				case d.ID.Driver != driver:
				case f.OtherClass(d):
					others = true
				default:
					return true
				}
			}
		}
	}
	return !others
}

// inTheWay says what keeps the claims from a node where they fit on the hardware
// alone.
func (a *amended) inTheWay(ctx context.Context, name string) []string {
	var texts []string
	for _, u := range a.q.Reach.Misfits[name] {
		texts = append(texts, u.Misfit.Text(a.Cluster.Snapshot))
	}
	node := a.q.Cluster.Snapshot.Node(name)
	if node == nil {
		return texts
	}
	if fits, err := a.fits(ctx, node, false); err == nil && fits {
		return texts
	}
	taints := map[string]bool{}
	for _, pool := range a.q.Reach.Pools[name] {
		for i := range pool.Devices {
			for _, taint := range pool.Devices[i].Taints {
				if text := taint.String(); !taints[text] {
					taints[text] = true
					texts = append(texts, "device taint "+text)
				}
			}
		}
	}
	return texts
}

// tolerant returns claims that tolerate all taints of devices.
func tolerant(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	all := []resourceapi.DeviceToleration{{Operator: resourceapi.DeviceTolerationOpExists}}
	changed := make([]*resourceapi.ResourceClaim, 0, len(claims))
	for _, claim := range claims {
		claim = claim.DeepCopy()
		for i := range claim.Spec.Devices.Requests {
			r := &claim.Spec.Devices.Requests[i]
			if r.Exactly != nil {
				r.Exactly.Tolerations = all
			}
			for j := range r.FirstAvailable {
				r.FirstAvailable[j].Tolerations = all
			}
		}
		changed = append(changed, claim)
	}
	return changed
}
