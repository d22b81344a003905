// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxRemedies limits how many changes are suggested if not all are asked for.
const maxRemedies = 5

// maxWaits limits how many of them may be something to wait for.
const maxWaits = 2

// Remedies returns changes that make the claims fit: changes of the nearest nodes and, on
// nodes with a conflict, changes of the request. More counts the ones left out, undecided
// the changes whose verdict is not known.
func (c *Case) Remedies(ctx context.Context, near []*Prospect) (shown []api.Remedy, more, undecided int) {
	r := &remedies{proposals: &proposals{Case: c}}
	if len(near) > 0 {
		r.scenario = near[0].Scenario
		asking := slices.MinFunc(near, func(a, b *Prospect) int { return a.estimate.compareAsking(b.estimate) })
		if asking != near[0] && c.aboutFacts() {
			asking.searched = true
			asking.findConflict(ctx)
		}
	}
	// An error only means that no more can be found.
	if r.corrections(ctx) == nil && r.proposeAll(ctx, refusals(ctx, c)) == nil {
		for _, p := range near {
			if p.Scenario == nil || r.at(ctx, p) != nil {
				break
			}
		}
	}
	shown, more = r.best()
	return shown, more, r.vain
}

// at looks for remedies on one node.
func (r *remedies) at(ctx context.Context, p *Prospect) error {
	r.scenario, r.conflict = p.Scenario, p.conflict
	if err := r.environment(ctx, p); err != nil || !p.searched {
		return err
	}
	for _, look := range []func(context.Context) error{r.lessAsked, r.conditions(p), r.released, func(ctx context.Context) error { return r.several(ctx, p) }} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// conditions proposes to change each condition of the environment that is part
// of the conflict, by itself. Without a conflict, all of them are tried.
func (r *remedies) conditions(p *Prospect) func(context.Context) error {
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

// best sorts the changes: the fewest first, then by loss, then by actor. Unless all are
// asked for, it keeps a few with the fewest changes: the first for each actor, then others.
func (r *remedies) best() (shown []api.Remedy, more int) {
	slices.SortStableFunc(r.found, func(a, b remedy) int {
		return cmp.Or(cmp.Compare(max(a.changes, 1), max(b.changes, 1)), cmp.Compare(a.loss, b.loss), cmp.Compare(actorOrder(a.Actor), actorOrder(b.Actor)))
	})
	// Of two changes that ask for less of the same, the later one asks for least.
	for i := 0; i < len(r.found); i++ {
		r.found = append(r.found[:i+1], slices.DeleteFunc(slices.Clone(r.found[i+1:]), func(later remedy) bool { return later.lessOf != "" && later.lessOf == r.found[i].lessOf })...)
	}
	room := maxRemedies
	if r.Target.AllRemedies {
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
		return r.Target.AllRemedies || max(r.found[i].changes, 1) == max(r.found[0].changes, 1)
	}
	for i := range r.found {
		if few(i) && shownBy[r.found[i].Actor] == 0 {
			keep(i)
		}
	}
	for i := range r.found {
		if few(i) && (r.Target.AllRemedies || r.found[i].Actor != api.ActorNobody || shownBy[api.ActorNobody] < maxWaits) {
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

// refusals returns changes that make the scheduler or the API server look at the claims
// at all.
func refusals(ctx context.Context, c *Case) []change {
	if c.Devices != api.Error {
		return nil
	}
	switch c.NodeCode { //nolint:exhaustive // The others are about what is asked or free.
	case api.ClassNotFound:
		return meantClasses(ctx, c)
	case api.SelectorError:
		return guarded(ctx, c)
	case api.AdminAccessDenied:
		return adminAccess(c)
	case api.FeatureDisabled:
		return gatesOn(c)
	}
	return nil
}

// meantClasses corrects the names of classes that do not exist, all in one change.
func meantClasses(ctx context.Context, c *Case) []change {
	var corrected []change
	for _, at := range places(c.waiting()) {
		required := *at.in(c.waiting()).class
		if c.Cluster.Snapshot.Class(required) != nil {
			continue
		}
		meant := c.Catalog.MeantClass(ctx, required, c.Cluster.Snapshot.Classes)
		if meant == "" {
			return nil
		}
		corrected = append(corrected, withClass(c, at, meant, lossNone))
	}
	return []change{joined(corrected)}
}

// guarded makes selectors that fail false instead.
func guarded(ctx context.Context, c *Case) []change {
	var list []change
	claims := c.waiting()
	seen := map[string]bool{}
	for _, at := range places(claims) {
		a := at.in(claims)
		if class := c.Cluster.Snapshot.Class(*a.class); class != nil && !seen[class.Name] {
			seen[class.Name] = true
			for k, selector := range class.Spec.Selectors {
				if guarded, ok := guard(ctx, c, selector); ok {
					name := api.Ref("DeviceClass", "", class.Name)
					list = append(list, change{
						actor: api.ActorAdmin, text: fmt.Sprintf("let the selector of class %s be false where it fails now: %s", class.Name, guarded),
						objects: []api.Edit{whatif.NewEdit(name, "replace", fmt.Sprintf("/spec/selectors/%d/cel/expression", k), guarded)},
					})
				}
			}
		}
		for k, selector := range *a.selectors {
			if guarded, ok := guard(ctx, c, selector); ok {
				list = append(list, change{
					actor: api.ActorUser, text: fmt.Sprintf("let the selector of request %s be false where it fails now: %s", a.name, guarded),
					claims: []claimEdit{{at.claim, "replace", fmt.Sprintf("%s/selectors/%d/cel/expression", at.pointer(), k), guarded}},
				})
			}
		}
	}
	return list
}

// adminAccess asks for the label of the namespace, or does without.
func adminAccess(c *Case) []change {
	var without []claimEdit
	namespace := ""
	claims := c.waiting()
	for _, at := range places(claims) {
		exact := claims[at.claim].Spec.Devices.Requests[at.request].Exactly
		if exact != nil && ptr.Deref(exact.AdminAccess, false) {
			without = append(without, claimEdit{at.claim, "remove", at.pointer() + "/adminAccess", nil})
			namespace = claims[at.claim].Namespace
		}
	}
	list := []change{{actor: api.ActorUser, loss: lossCondition, text: "remove adminAccess", claims: without}}
	n := c.Cluster.Snapshot.Namespace(namespace)
	if n == nil {
		return list
	}
	label := whatif.NewEdit(api.Ref("Namespace", "", namespace), "add", "/metadata/labels/"+whatif.PointerToken(resourceapi.DRAAdminNamespaceLabelKey), "true")
	if len(n.Labels) == 0 {
		label = whatif.NewEdit(label.Object, "add", "/metadata/labels", map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"})
	}
	return append(list, change{
		actor: api.ActorAdmin, objects: []api.Edit{label},
		text: fmt.Sprintf("label namespace %s with %s=true, if its users may access devices that others use", namespace, resourceapi.DRAAdminNamespaceLabelKey),
	})
}

// gatesOn turns on the feature gates that are off, each by itself.
func gatesOn(c *Case) []change {
	var list []change
	for _, gate := range []string{"DRAPrioritizedList", "DRAAdminAccess", "DRAConsumableCapacity", "DRADerivedAttributes"} {
		if !c.Cluster.Gates.Enabled(gate) {
			list = append(list, change{actor: api.ActorAdmin, gate: gate, text: gateText(gate)})
		}
	}
	return list
}
