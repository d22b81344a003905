// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxTries bounds the values that are tried in place of a required one.
const maxTries = 12

// lessAsked tries to ask for less. Only what is part of the conflict can help
// alone.
func (r *remedies) lessAsked(ctx context.Context) error {
	for _, i := range r.conflict {
		f := &r.scenario.facts[i]
		if f.kind == factCount && r.scenario.extended(f.at.claim) {
			if err := r.fewerExtended(ctx, f); err != nil {
				return err
			}
			continue
		}
		for _, c := range milder(ctx, r.scenario, f, r.fit) {
			ok, err := r.propose(ctx, c)
			if err != nil {
				return err
			}
			if ok {
				break
			}
		}
	}
	if len(r.conflict) == 0 {
		return nil
	}
	if err := r.fewerRequests(ctx); err != nil {
		return err
	}
	return r.proposeAll(ctx, otherClasses(ctx, r.scenario))
}

// milder lists what can be asked for in the place of a requirement, the mildest first. Fits
// reports whether edits help, where that decides how many devices are asked for.
func milder(ctx context.Context, s *Scenario, f *fact, fits func(context.Context, ...claimEdit) bool) []change {
	switch f.kind {
	case factCount:
		return fewer(ctx, s, f, fits)
	case factAll:
		return notAll(ctx, s, f, fits)
	case factSelector:
		return loosen(s, f)
	case factCapacity:
		return otherCapacity(s, f)
	case factConstraint:
		return otherConstraint(s, f)
	case factRequest, factRestriction, factGate, factPool, factTaint, factHolder, factCounters, factGroups, factClass:
	}
	return nil
}

// fewer looks for the most devices that a request could have.
func fewer(ctx context.Context, s *Scenario, f *fact, fits func(context.Context, ...claimEdit) bool) []change {
	required := *f.at.in(s.claims).count
	with := func(count int64) []claimEdit {
		return []claimEdit{{f.at.claim, "replace", f.at.pointer() + "/count", count}}
	}
	count := most(ctx, min(required, resourceapi.AllocationResultsMaxSize+1), with, fits)
	if count == 0 {
		return nil
	}
	return []change{{
		actor: api.ActorUser, loss: lossOf(count, required), claims: with(count),
		text: fmt.Sprintf("request %s instead of %d in request %s", english.Count(int(count), "device"), required, s.nameOf(f.at)),
	}}
}

// fewerExtended does the same for what a container asks for.
func (r *remedies) fewerExtended(ctx context.Context, f *fact) error {
	required := *f.at.in(r.scenario.claims).count
	place, ok := r.scenario.extendedPlace(f.at)
	if !ok {
		return nil
	}
	with := func(count int64) change {
		quantity := resource.NewQuantity(count, resource.DecimalSI).String()
		var operations []claimEdit
		for _, list := range []struct {
			field string
			has   bool
		}{{"limits", hasResource(place.Container.Resources.Limits, place.Resource)}, {"requests", hasResource(place.Container.Resources.Requests, place.Resource)}} {
			if list.has {
				operations = append(operations, claimEdit{op: "replace", path: place.Pointer + "/" + list.field + "/" + whatif.PointerToken(string(place.Resource)), value: quantity})
			}
		}
		c := change{
			actor: api.ActorUser, loss: lossOf(count, required),
			text: fmt.Sprintf("request %d instead of %d of %s in container %s", count, required, place.Resource, place.Container.Name),
		}
		c.objects, c.silent = r.podEdits(operations)
		return c
	}
	low, high := int64(0), required
	for high-low > 1 {
		count := (low + high) / 2
		if answer, err := r.ask(ctx, with(count)); err == nil && answer != nil {
			low = count
		} else {
			high = count
		}
	}
	if low == 0 {
		return ctx.Err()
	}
	_, err := r.propose(ctx, with(low))
	return err
}

// notAll asks for as many as there can be.
func notAll(ctx context.Context, s *Scenario, f *fact, fits func(context.Context, ...claimEdit) bool) []change {
	with := func(count int64) []claimEdit {
		path := f.at.pointer()
		return []claimEdit{
			{f.at.claim, "replace", path + "/allocationMode", string(resourceapi.DeviceAllocationModeExactCount)},
			{f.at.claim, "add", path + "/count", count},
		}
	}
	count := most(ctx, resourceapi.AllocationResultsMaxSize+1, with, fits)
	if count == 0 {
		return nil
	}
	text := fmt.Sprintf("request %s instead of all in request %s", english.Count(int(count), "device"), s.nameOf(f.at))
	return []change{{actor: api.ActorUser, loss: lossFewer, text: text, claims: with(count)}}
}

// otherCapacity corrects the name of a capacity that no device of the node has, or removes
// it; if the devices have it, it looks for a smaller amount.
func otherCapacity(s *Scenario, f *fact) []change {
	required := (*f.at.in(s.claims).capacity).Requests[f.capacity]
	if !f.unknown {
		return lessCapacity(s, f, required)
	}
	var list []change
	for _, meant := range capacitiesMeant(string(f.capacity), s.capacities(f.at)) {
		path := f.at.pointer() + "/capacity/requests/"
		list = append(list, change{
			actor: api.ActorUser, loss: lossNone,
			text: fmt.Sprintf("correct the capacity in request %s: %s instead of %s", s.nameOf(f.at), meant, f.capacity),
			claims: []claimEdit{
				{f.at.claim, "add", path + whatif.PointerToken(meant), required.String()},
				{f.at.claim, "remove", path + whatif.PointerToken(string(f.capacity)), nil},
			},
		})
	}
	return append(list, withoutCapacity(s, f))
}

// capacitiesMeant returns names similar to a name that no device has: with another domain
// or none, and else with a typo.
func capacitiesMeant(name string, names []string) []string {
	base := func(name string) string { return name[strings.LastIndex(name, "/")+1:] }
	var meant []string
	for _, other := range names {
		if base(other) == base(name) {
			meant = append(meant, other)
		}
	}
	if typo := english.Typo(name, names); typo != "" && len(meant) == 0 {
		meant = append(meant, typo)
	}
	return meant
}

func withoutCapacity(s *Scenario, f *fact) change {
	path := f.at.pointer() + "/capacity"
	if requests := (*f.at.in(s.claims).capacity).Requests; len(requests) > 1 {
		path += "/requests/" + whatif.PointerToken(string(f.capacity))
	}
	return change{
		actor: api.ActorUser, loss: lossCondition, text: fmt.Sprintf("remove the capacity %s from request %s", f.capacity, s.nameOf(f.at)),
		unbounded: []requestPlace{f.at},
		claims:    []claimEdit{{f.at.claim, "remove", path, nil}},
	}
}

// lessCapacity looks for the largest capacity that is available.
func lessCapacity(s *Scenario, f *fact, required resource.Quantity) []change {
	var values []resource.Quantity
	add := func(q resource.Quantity) {
		if q.Sign() > 0 && q.Cmp(required) < 0 && !slices.ContainsFunc(values, func(have resource.Quantity) bool { return have.Cmp(q) == 0 }) {
			values = append(values, q)
		}
	}
	for _, pool := range s.whole.Reach.Pools[s.node.Name] {
		for i := range pool.Devices {
			d := &pool.Devices[i]
			capacity, ok := d.Capacity[f.capacity]
			if !ok {
				continue
			}
			left := capacity.Value.DeepCopy()
			left.Sub(s.whole.Cluster.Usage.Consumed(d.ID)[f.capacity])
			add(capacity.Value)
			add(left)
			if policy := capacity.RequestPolicy; policy != nil {
				for _, value := range policy.ValidValues {
					add(value)
				}
				if policy.ValidRange != nil && policy.ValidRange.Max != nil {
					add(*policy.ValidRange.Max)
				}
				if policy.Default != nil {
					add(*policy.Default)
				}
			}
		}
	}
	slices.SortFunc(values, func(a, b resource.Quantity) int { return b.Cmp(a) })
	var list []change
	for _, value := range values[:min(len(values), maxTries)] {
		list = append(list, change{
			actor: api.ActorUser, loss: lossNear,
			text:   fmt.Sprintf("request %s instead of %s of %s in request %s", selector.QuantityText(value), selector.QuantityText(required), f.capacity, s.nameOf(f.at)),
			claims: []claimEdit{{f.at.claim, "replace", f.at.pointer() + "/capacity/requests/" + whatif.PointerToken(string(f.capacity)), value.String()}},
		})
	}
	return list
}

// loosen looks for the nearest value that some device has, and else drops the
// part of the selector.
func loosen(s *Scenario, f *fact) []change {
	at, name := f.at, s.nameOf(f.at)
	sel := s.whole.Selectors.Compile((*at.in(s.claims).selectors)[f.selector].CEL.Expression)
	looser := s.whole.Selectors.Looser(sel, f.conjunct, measured(s.whole, at, &sel.Conjuncts[f.conjunct]), english.Typo)
	var list []change
	for _, l := range looser[:min(len(looser), maxTries)] {
		loss := lossNear
		if l.Text != "" {
			loss = lossNone
		}
		list = append(list, change{
			actor: api.ActorUser, loss: loss, anywhere: true,
			text:   fmt.Sprintf("require %s instead of %s in request %s", l.Wanted, sel.Conjuncts[f.conjunct].Wanted, name),
			claims: []claimEdit{{at.claim, "replace", fmt.Sprintf("%s/selectors/%d/cel/expression", at.pointer(), f.selector), l.Expression}},
		})
	}
	return append(list, change{
		actor: api.ActorUser, loss: lossCondition,
		text:   fmt.Sprintf("remove the selector %s from request %s", &sel.Conjuncts[f.conjunct], name),
		claims: withoutParts(s, at, f.selector, []int{f.conjunct}),
	})
}

// measured visits the devices of [remedies.obtainable] whose drivers have measured what a
// part of a selector asks for.
func measured(c *Case, at requestPlace, part *selector.Part) iter.Seq2[string, *resourceapi.Device] {
	unmeasured := c.Catalog.UnmeasuredBy(part).Drivers
	return func(yield func(string, *resourceapi.Device) bool) {
		for driver, device := range obtainable(c, at) {
			if !slices.Contains(unmeasured, driver) && !yield(driver, device) {
				return
			}
		}
	}
}

// obtainable visits the devices of a request's class, with their drivers, that
// nobody uses on a node where the pod can go.
func obtainable(c *Case, at requestPlace) iter.Seq2[string, *resourceapi.Device] {
	return func(yield func(string, *resourceapi.Device) bool) {
		var f *eligibility.Funnel
		if at.claim < len(c.Claims) && at.request < len(c.Claims[at.claim].Funnels) {
			f = c.Claims[at.claim].Funnels[at.request][max(at.alternative, 0)]
		}
		seen := map[*cluster.NodePool]bool{}
		for _, node := range c.Reach.Candidates {
			for _, pool := range c.Reach.Pools[node.Name] {
				if seen[pool] {
					continue
				}
				seen[pool] = true
				for i := range pool.Devices {
					d := &pool.Devices[i]
					if c.Cluster.Usage.InUse(d.ID) || f != nil && f.OtherClass(d) {
						continue
					}
					if !yield(d.ID.Driver, d.Device) {
						return
					}
				}
			}
		}
	}
}

// withoutParts drops parts of a selector, or all of it if none is left.
func withoutParts(s *Scenario, at requestPlace, selector int, conjuncts []int) []claimEdit {
	list := *at.in(s.claims).selectors
	sel := s.whole.Selectors.Compile(list[selector].CEL.Expression)
	path := at.pointer() + "/selectors"
	switch {
	case len(conjuncts) < len(sel.Conjuncts):
		return []claimEdit{{at.claim, "replace", fmt.Sprintf("%s/%d/cel/expression", path, selector), sel.Without(conjuncts)}}
	case len(list) == 1:
		return []claimEdit{{at.claim, "remove", path, nil}}
	default:
		return []claimEdit{{at.claim, "remove", fmt.Sprintf("%s/%d", path, selector), nil}}
	}
}

// otherConstraint corrects the name of an attribute that no device has, and else
// drops the constraint.
func otherConstraint(s *Scenario, f *fact) []change {
	c := cluster.Constraints(s.claims[f.at.claim])[f.constraint]
	missing := s.whole.Catalog.Words().Count(selector.Attribute(resourceapi.QualifiedName(c.Attribute), "")) == 0
	var list []change
	if nearest := english.Typo(string(c.Attribute), s.whole.Catalog.Attributes()); missing && nearest != "" {
		field := "matchAttribute"
		if c.Distinct {
			field = "distinctAttribute"
		}
		list = append(list, change{
			actor: api.ActorUser, loss: lossNone, text: fmt.Sprintf("correct the constraint: %s instead of %s", nearest, c.Attribute),
			claims: []claimEdit{{f.at.claim, "replace", fmt.Sprintf("/devices/constraints/%d/%s", f.constraint, field), nearest}},
		})
	}
	return append(list, withoutConstraint(s, f))
}

func withoutConstraint(s *Scenario, f *fact) change {
	constraints := s.claims[f.at.claim].Spec.Devices.Constraints
	path := fmt.Sprintf("/devices/constraints/%d", f.constraint)
	if len(constraints) == 1 {
		path = "/devices/constraints"
	}
	said := ""
	for _, c := range cluster.Constraints(s.claims[f.at.claim]) {
		// The evidence of a planned claim names the field of its template.
		if c.Path == fmt.Sprintf("spec.devices.constraints[%d]", f.constraint) {
			said = c.String()
		}
	}
	return change{
		actor: api.ActorUser, loss: lossCondition, text: "remove the constraint: " + said,
		claims: []claimEdit{{f.at.claim, "remove", path, nil}},
	}
}

// fewerRequests does without one of the requests that stand in each other's way.
// Of those that want the same it tries one.
func (r *remedies) fewerRequests(ctx context.Context) error {
	tried := map[int][]resourceapi.DeviceRequest{}
	for _, i := range slices.Backward(r.conflict) {
		f := &r.scenario.facts[i]
		if f.kind != factRequest || r.scenario.extended(f.at.claim) {
			continue
		}
		devices := &r.scenario.claims[f.at.claim].Spec.Devices
		name := devices.Requests[f.at.request].Name
		named := func(ref string) bool { return resourceclaim.BaseRequestRef(ref) == name }
		if len(devices.Requests) == 1 || slices.ContainsFunc(devices.Constraints, func(c resourceapi.DeviceConstraint) bool { return slices.ContainsFunc(c.Requests, named) }) {
			continue
		}
		nameless := devices.Requests[f.at.request]
		nameless.Name = ""
		if slices.ContainsFunc(tried[f.at.claim], func(other resourceapi.DeviceRequest) bool { return apiequality.Semantic.DeepEqual(nameless, other) }) {
			continue
		}
		tried[f.at.claim] = append(tried[f.at.claim], nameless)
		ok, err := r.propose(ctx, change{
			actor: api.ActorUser, loss: lossCondition, text: "remove request " + r.scenario.requestName(f.at),
			claims: []claimEdit{{f.at.claim, "remove", fmt.Sprintf("/devices/requests/%d", f.at.request), nil}},
		})
		if err != nil || ok {
			return err
		}
	}
	return nil
}

// maxClasses bounds the classes that are tried in the place of one.
const maxClasses = 3

// otherClasses tries classes with devices of the same kinds.
// otherClasses returns changes to classes with devices of the same kinds.
func otherClasses(ctx context.Context, s *Scenario) []change {
	var list []change
	for _, at := range places(s.claims) {
		if s.extended(at.claim) || at.request >= len(s.whole.Claims[at.claim].Funnels) {
			continue
		}
		f := s.whole.Claims[at.claim].Funnels[at.request][max(at.alternative, 0)]
		kinds := map[deviceKind]bool{}
		for i := range f.Devices {
			if d := &f.Devices[i]; !f.OtherClass(d) {
				kinds[kindOf(d.ID.Driver, d.Device)] = true
			}
		}
		var names []string
		for _, class := range s.whole.Cluster.Snapshot.Classes {
			if class.Name != f.Request.Class && classHas(ctx, s, class, kinds) {
				names = append(names, class.Name)
			}
		}
		for _, name := range nearestFirst(f.Request.Class, names)[:min(len(names), maxClasses)] {
			list = append(list, withClass(s.whole, at, name, lossOther))
		}
	}
	return list
}

// deviceKind identifies a kind of device across classes: the driver and, if it publishes
// that, the attribute type. A partition, or a device for virtual machines, is not of the
// kind of a whole GPU.
type deviceKind struct{ driver, of string }

func kindOf(driver string, device *resourceapi.Device) deviceKind {
	of, _ := selector.Lookup(device.Attributes, driver, "type", driver)
	return deviceKind{driver, ptr.Deref(of.StringValue, "")}
}

// classHas reports whether a class has devices on the scenario's node, and none of
// other kinds anywhere.
func classHas(ctx context.Context, s *Scenario, class *resourceapi.DeviceClass, kinds map[deviceKind]bool) bool {
	has := slices.ContainsFunc(s.whole.Reach.Pools[s.node.Name], func(pool *cluster.NodePool) bool {
		return slices.ContainsFunc(pool.Devices, func(d cluster.Device) bool {
			return kinds[kindOf(d.ID.Driver, d.Device)] && s.whole.Catalog.InClass(ctx, class, d.ID.Driver, d.Device)
		})
	})
	return has && !slices.ContainsFunc(s.whole.Cluster.Pools.Devices(), func(d cluster.Device) bool {
		return !kinds[kindOf(d.ID.Driver, d.Device)] && s.whole.Catalog.InClass(ctx, class, d.ID.Driver, d.Device)
	})
}

func withClass(c *Case, at requestPlace, class string, loss int) change {
	claims := c.waiting()
	a := at.in(claims)
	return change{
		actor: api.ActorUser, loss: loss,
		text:   fmt.Sprintf("request class %s instead of %s in request %s", class, *a.class, nameIn(claims, at)),
		claims: []claimEdit{{at.claim, "replace", at.pointer() + "/deviceClassName", class}},
	}
}

// nearestFirst sorts names by how close they are to one.
func nearestFirst(name string, names []string) []string {
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(english.Distance(name, a), english.Distance(name, b)), cmp.Compare(a, b))
	})
	return sorted
}

// suitable returns what the user can change so that the pod can use the node of the
// scenario, and what that is in words.
func suitable(s *Scenario) (operations []claimEdit, texts []string) {
	for i := range s.facts {
		f := &s.facts[i]
		if f.kind != factRestriction {
			continue
		}
		measures := s.whole.restrictionMeasures(&Prospect{Nodes: []*corev1.Node{s.node}}, f)
		at := slices.IndexFunc(measures, func(m measure) bool { return m.actor == api.ActorUser })
		if at < 0 {
			return nil, nil
		}
		operations, texts = append(operations, measures[at].pod...), append(texts, measures[at].text)
	}
	return operations, texts
}
