// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/counting"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxRemedies is how many changes are suggested if not all are asked for.
const maxRemedies = 5

// maxWaits is how many of them may be something to wait for.
const maxWaits = 2

// change is something that somebody could do.
type change struct {
	actor string
	text  string
	// changes counts what has to change, 0 for a single thing; loss is what that
	// takes away from what is asked for.
	changes, loss int
	// lessOf names what is asked for less, if the change does nothing else.
	lessOf string
	// claims are edits of the claims that wait, or of their templates.
	claims []claimEdit
	// objects are edits of other objects.
	objects []api.Edit
	// gate is a feature gate to turn on.
	gate string
	// silent is true if there is no command for it.
	silent bool
	// anywhere is true if it may help on other nodes than that of the scenario.
	anywhere bool
}

// claimEdit is an operation on the spec of a claim: that with this index among
// those that wait.
type claimEdit struct {
	claim    int
	op, path string
	value    any
}

// remedies looks for changes that make the claims fit, and tries each with the
// allocator.
type remedies struct {
	*inquiry
	// scenario is the node that is looked at; nil if there is none.
	scenario *scenario
	// conflict has a minimal set of facts there that cannot all hold.
	conflict []int
	found    []remedy
	// vain is how often the allocator did not end.
	vain int
}

// remedy is a change that was proved.
type remedy struct {
	change
	api.Remedy
}

// findRemedies fills in the remedies: what can be done about the nearest nodes,
// and, on those for which there is a conflict, about what is asked for.
func (x *inquiry) findRemedies(ctx context.Context, near []*prospect) {
	r := &remedies{inquiry: x}
	if len(near) > 0 {
		r.scenario = near[0].scenario
	}
	// An error only means that no more can be found.
	if r.corrections(ctx) == nil && r.refusals(ctx) == nil {
		for _, p := range near {
			if p.scenario == nil || r.at(ctx, p) != nil {
				break
			}
		}
	}
	x.out.Remedies, x.out.MoreRemedies = r.best()
}

// at looks for remedies on one node.
func (r *remedies) at(ctx context.Context, p *prospect) error {
	r.scenario, r.conflict = p.scenario, p.conflict
	if err := r.environment(ctx, p); err != nil || !p.searched {
		return err
	}
	for _, look := range []func(context.Context) error{r.wishes, r.conditions(p), r.released, r.several} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// conditions proposes to change each condition of the environment that is part
// of the conflict, by itself. Without a conflict, all of them are tried.
func (r *remedies) conditions(p *prospect) func(context.Context) error {
	return func(ctx context.Context) error {
		for i := range r.scenario.facts {
			f := &r.scenario.facts[i]
			if f.kind == factHolder || f.kind == factRestriction || len(r.conflict) > 0 && !slices.Contains(r.conflict, i) {
				continue
			}
			for _, m := range r.measures(p, f) {
				if _, err := r.propose(ctx, change{
					actor: m.actor, text: m.text, loss: m.loss, claims: m.claims, objects: m.objects, gate: m.gate, silent: m.silent,
				}); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// best sorts what was found: the fewest changes first, then those that take
// least away, then by who can act. Unless all are asked for, it keeps a few of
// those with the fewest changes: the first for each who can act, then others.
func (r *remedies) best() (shown []api.Remedy, more int) {
	slices.SortStableFunc(r.found, func(a, b remedy) int {
		return cmp.Or(cmp.Compare(max(a.changes, 1), max(b.changes, 1)), cmp.Compare(a.loss, b.loss), cmp.Compare(actorOrder(a.Actor), actorOrder(b.Actor)))
	})
	// Of two changes that ask for less of the same, the later one asks for least.
	for i := 0; i < len(r.found); i++ {
		r.found = append(r.found[:i+1], slices.DeleteFunc(slices.Clone(r.found[i+1:]), func(later remedy) bool { return later.lessOf != "" && later.lessOf == r.found[i].lessOf })...)
	}
	room := maxRemedies
	if r.subject.opts.AllRemedies {
		room = len(r.found)
	}
	kept := make([]bool, len(r.found))
	shownBy := map[string]int{}
	keep := func(i int) {
		if !kept[i] && room > 0 {
			shownBy[r.found[i].Actor]++
			kept[i] = true
			room--
		}
	}
	few := func(i int) bool {
		return r.subject.opts.AllRemedies || max(r.found[i].changes, 1) == max(r.found[0].changes, 1)
	}
	for i := range r.found {
		if few(i) && shownBy[r.found[i].Actor] == 0 {
			keep(i)
		}
	}
	for i := range r.found {
		if few(i) && (r.subject.opts.AllRemedies || r.found[i].Actor != api.ActorNobody || shownBy[api.ActorNobody] < maxWaits) {
			keep(i)
		}
	}
	for i := range r.found {
		if kept[i] {
			shown = append(shown, r.found[i].Remedy)
		}
	}
	return shown, len(r.found) - len(shown)
}

func actorOrder(actor string) int {
	return slices.Index([]string{api.ActorUser, api.ActorAdmin, api.ActorNobody}, actor)
}

// propose keeps a change if the allocator then finds devices. It reports whether
// it did, and fails if there is no time left.
func (r *remedies) propose(ctx context.Context, c change) (bool, error) {
	if slices.ContainsFunc(r.found, func(have remedy) bool { return have.text == c.text }) {
		return true, nil
	}
	answer, err := r.ask(ctx, c)
	if err != nil {
		return false, ctx.Err()
	}
	if answer == nil {
		return false, ctx.Err()
	}
	answer.Actor, answer.Change = c.actor, c.text
	answer.Edits = whatif.WithOldValues(r.Snap, answer.Edits)
	r.write(answer, c.silent)
	r.found = append(r.found, remedy{c, *answer})
	return true, nil
}

// ask puts the whole question again, with a change made: about all nodes that
// would take the pod. The answer is nil unless the claims fit on one of them
// and no node ends the attempt.
func (r *remedies) ask(ctx context.Context, c change) (*api.Remedy, error) {
	answer := &api.Remedy{Edits: r.editsOf(c), FeatureGate: c.gate, Devices: []api.AllocatedDevice{}}
	x, err := r.changed(ctx, c)
	if err != nil || x == nil {
		return nil, err
	}
	nodes := x.Cluster.Candidates
	if r.scenario != nil && r.out.Verdict == api.DoesNotFit && len(c.objects) == 0 && c.gate == "" && !c.anywhere && slices.Contains(nodes, r.scenario.node) {
		// Most of what does not help is found out here. It tells nothing where an
		// error has kept the other nodes from being tried.
		if verdict := r.verdicts(ctx, x, 2, r.scenario.node)[0]; verdict.Outcome != allocator.Fits {
			return nil, ctx.Err()
		}
	}
	groups := x.contents.Groups(x.Question, nodes)
	asked := make([]*corev1.Node, 0, len(groups))
	for _, group := range groups {
		at := 0
		if r.scenario != nil {
			// The node that is talked about stands for its like.
			at = max(0, slices.IndexFunc(group, func(n *corev1.Node) bool { return n.Name == r.scenario.node.Name }))
		}
		asked = append(asked, group[at])
	}
	best := -1
	verdicts := r.verdicts(ctx, x, 1, asked...)
	for i, verdict := range verdicts {
		switch verdict.Outcome {
		case allocator.Fits:
			if x.Cluster.Alloc.Facts.MapsNodeResources(verdict.Allocations) {
				continue
			}
			answer.Nodes += len(groups[i])
			if best < 0 || r.scenario != nil && asked[i].Name == r.scenario.node.Name {
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
		answer.Devices = append(answer.Devices, funnel.PickedDevices(x.Pod, x.Claims[i].Claim, &verdicts[best].Allocations[i])...)
	}
	return answer, nil
}

// minSearchTime is what is left of SearchTime where the allocator often does not
// end.
const minSearchTime = counting.SearchTime / 16

// verdicts asks the allocator about nodes where counting does not say that nothing
// fits. It waits for a part of SearchTime, and half as long after each time that
// it waited for nothing: what is hard once mostly stays hard.
func (r *remedies) verdicts(ctx context.Context, x *inquiry, part time.Duration, nodes ...*corev1.Node) []allocator.Verdict {
	limited, cancel := context.WithTimeout(ctx, max(counting.SearchTime>>r.vain, minSearchTime)/part)
	defer cancel()
	verdicts, _ := counting.CheckUnless(limited, x.Question, nodes, func(ctx context.Context, node *corev1.Node) bool { return counting.IsHardAlone(ctx, x.Question, node) })
	if limited.Err() != nil {
		r.vain++
	}
	return verdicts
}

// changed is the inquiry with a change made, up to the point where the
// allocator is asked. It is nil if something else is in the way already.
func (r *remedies) changed(ctx context.Context, c change) (*inquiry, error) {
	snap, alloc, subject, site := r.Snap, r.Cluster.Alloc, *r.subject, r.Cluster
	switch {
	case r.local(c):
		var err error
		if snap, err = whatif.Amend(r.scenario.snap, c.objects); err != nil {
			return nil, err
		}
		if alloc, err = r.Cluster.Alloc.Amended(ctx, snap); err != nil {
			return nil, fmt.Errorf("set up the allocator: %w", err)
		}
		site = nil
	case len(c.objects) > 0 || c.gate != "":
		var gates []string
		if c.gate != "" {
			gates = append(gates, c.gate)
		}
		var err error
		if snap, err = whatif.Amend(r.Snap, c.objects, gates...); err != nil {
			return nil, err
		}
		if alloc, err = r.Cluster.Alloc.Amended(ctx, snap); err != nil {
			return nil, fmt.Errorf("set up the allocator: %w", err)
		}
		again, err := find(snap, alloc, r.subject.opts)
		if err != nil {
			return nil, err
		}
		if pod := r.Pod; pod != nil && !r.subject.hypothetical {
			again.usePod(alloc, snap.Pod(pod.Namespace, pod.Name))
		}
		subject, site = *again, nil
	}
	subject.claims = slices.Clone(subject.claims)
	x := newInquiry(alloc, snap, &subject)
	if c.gate == "" {
		// No change is about what devices publish, so that results and names hold.
		x.Selectors, x.Catalog = r.Selectors, r.Catalog
	}
	if err := x.withClaims(r, c.claims); err != nil {
		return nil, err
	}
	x.describeClaims()
	if x.problems() || x.refused() {
		return nil, nil
	}
	if site != nil && site.Pools != nil {
		x.Cluster, x.contents = site, r.contents
		return x, nil
	}
	return x, x.survey()
}

// local reports whether a change concerns only the node of the scenario: the node
// itself is changed, a pod leaves it, or claims are released whose devices no
// other node can reach. Then the other nodes, where the claims did not fit, need
// not be asked again.
func (r *remedies) local(c change) bool {
	if r.scenario == nil || r.out.Verdict != api.DoesNotFit || c.gate != "" || len(c.objects) == 0 || len(c.claims) > 0 || dependsOnPodsElsewhere(r.Question) {
		return false
	}
	for _, e := range c.objects {
		kind, namespace, name := whatif.ParseObject(e.Object)
		switch kind {
		case api.KindNode:
			if name != r.scenario.node.Name {
				return false
			}
			continue
		case api.KindPod:
			if pod := r.Snap.Pod(namespace, name); e.Op != "remove" || e.Path != "" || pod == nil || pod.Spec.NodeName != r.scenario.node.Name {
				return false
			}
			continue
		}
		claim := r.Snap.Claim(namespace, name)
		if kind != api.KindClaim || e.Path != "/status/allocation" || claim == nil {
			return false
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			at := slices.IndexFunc(r.Cluster.Pools[r.scenario.node.Name], func(p *cluster.NodePool) bool {
				return p.Pool.Driver == result.Driver && p.Pool.Name == result.Pool
			})
			if at < 0 {
				return false
			}
			for _, slice := range r.Cluster.Pools[r.scenario.node.Name][at].Pool.Slices {
				if ptr.Deref(slice.Spec.NodeName, "") != r.scenario.node.Name {
					return false
				}
			}
		}
	}
	return true
}

// withClaims puts edited claims in the place of those that wait.
func (x *inquiry) withClaims(r *remedies, edits []claimEdit) error {
	for i := range r.Claims {
		var operations []api.Edit
		for _, e := range edits {
			if e.claim == i {
				operations = append(operations, whatif.NewEdit("", e.op, e.path, e.value))
			}
		}
		if len(operations) == 0 {
			continue
		}
		pc := &x.PodClaims[r.Claims[i].Index]
		spec, err := whatif.Edited(&pc.Claim.Spec, operations, "")
		if err != nil {
			return err
		}
		claim := *pc.Claim
		claim.Spec = *spec
		pc.Claim = cluster.Defaulted(&claim)
	}
	return nil
}

// editsOf lists the edits of stored objects that make a change. A claim that
// was made from a template is edited with it.
func (r *remedies) editsOf(c change) []api.Edit {
	var edits []api.Edit
	for _, e := range c.claims {
		claim, template := r.Claims[e.claim].Claim, r.PodClaims[r.Claims[e.claim].Index].Template
		fromTemplate := template != "" && r.Snap.Template(claim.Namespace, template) != nil
		if fromTemplate {
			edit := whatif.NewEdit(whatif.Object(api.KindTemplate, claim.Namespace, template), e.op, "/spec/spec"+e.path, e.value)
			if !slices.ContainsFunc(edits, func(have api.Edit) bool { return have.Object == edit.Object && have.Path == edit.Path }) {
				edits = append(edits, edit)
			}
		}
		if !fromTemplate || r.Snap.Claim(claim.Namespace, claim.Name) != nil {
			edit := whatif.NewEdit(whatif.ClaimObject(claim), e.op, "/spec"+e.path, e.value)
			edit.Generated = fromTemplate
			edits = append(edits, edit)
		}
	}
	return append(edits, c.objects...)
}

// fit reports whether changed claims fit on the scenario's node.
func (r *remedies) fit(ctx context.Context, edits ...claimEdit) bool {
	x, err := r.changed(ctx, change{claims: edits})
	if err != nil || x == nil {
		return false
	}
	return r.verdicts(ctx, x, 4, r.scenario.node)[0].Outcome == allocator.Fits
}

// waiting lists the claims that wait.
func (r *remedies) waiting() []*resourceapi.ResourceClaim {
	claims := make([]*resourceapi.ResourceClaim, 0, len(r.Claims))
	for i := range r.Claims {
		claims = append(claims, r.Claims[i].Claim)
	}
	return claims
}
