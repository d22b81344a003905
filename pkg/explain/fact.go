// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/fieldpath"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// factKind says what sort of thing a fact is, and so how it is given up.
type factKind int

// What is asked for comes first, then what is in the way: conflicts prefer
// earlier facts, and those that follow from others come after them. A request
// as such, and a class, are only doubted if nothing else explains it.
const (
	factCount factKind = iota
	factAll
	factSelector
	factCapacity
	factRequest
	factConstraint
	factRestriction
	factGate
	factPool
	factTaint
	factHolder
	factCounters
	factGroups
	factClass
)

// fact is something that holds and may be why claims do not fit. Facts can be
// given up in thought, see [hypothesis].
type fact struct {
	kind     factKind
	text     string
	evidence api.Evidence
	// at is the request of a factCount, factAll, factSelector, factCapacity or
	// factRequest.
	// With claim it is also where a factConstraint is.
	at requestPlace
	// selector and conjunct tell which part of a selector, of the request or of
	// the class, this is.
	selector, conjunct int
	class              *resourceapi.DeviceClass
	// capacity is the name of a capacity that is asked for; unknown is set if no
	// device of the node has one of that name.
	capacity   resourceapi.QualifiedName
	unknown    bool
	constraint int
	gate       string
	misfit     *cluster.Misfit
	pool       *cluster.Pool
	counterSet string
	taint      resourceapi.DeviceTaint
	tainted    *cluster.Device
	// holder is an allocated claim; of a factRestriction it is one of the pod's
	// own, which keeps it from the node.
	holder *resourceapi.ResourceClaim
}

// requestPlace is where a request or an alternative is: the indices of its
// claim in the scenario, of the request, and of the alternative, which is -1 for
// a request without.
type requestPlace struct{ claim, request, alternative int }

// asked are the fields of a request, or of an alternative, that can be changed.
type asked struct {
	// name is "request" or "request/alternative".
	name        string
	class       *string
	mode        *resourceapi.DeviceAllocationMode
	count       *int64
	selectors   *[]resourceapi.DeviceSelector
	capacity    **resourceapi.CapacityRequirements
	tolerations *[]resourceapi.DeviceToleration
}

func (at requestPlace) in(claims []*resourceapi.ResourceClaim) asked {
	r := &claims[at.claim].Spec.Devices.Requests[at.request]
	if at.alternative < 0 {
		e := r.Exactly
		return asked{r.Name, &e.DeviceClassName, &e.AllocationMode, &e.Count, &e.Selectors, &e.Capacity, &e.Tolerations}
	}
	a := &r.FirstAvailable[at.alternative]
	return asked{resourceclaim.CreateSubRequestRef(r.Name, a.Name), &a.DeviceClassName, &a.AllocationMode, &a.Count, &a.Selectors, &a.Capacity, &a.Tolerations}
}

// pointer is the JSON pointer to the place below the claim's spec.
func (at requestPlace) pointer() string {
	path := fmt.Sprintf("/devices/requests/%d", at.request)
	if at.alternative < 0 {
		return path + "/exactly"
	}
	return fmt.Sprintf("%s/firstAvailable/%d", path, at.alternative)
}

// path is the same in the manner of [api.Evidence].
func (at requestPlace) path() string {
	path := fmt.Sprintf("spec.devices.requests[%d]", at.request)
	if at.alternative < 0 {
		return path + ".exactly"
	}
	return fmt.Sprintf("%s.firstAvailable[%d]", path, at.alternative)
}

// places lists the requests and alternatives of claims.
func places(claims []*resourceapi.ResourceClaim) []requestPlace {
	var all []requestPlace
	for i, claim := range claims {
		for j := range claim.Spec.Devices.Requests {
			if claim.Spec.Devices.Requests[j].Exactly != nil {
				all = append(all, requestPlace{i, j, -1})
			}
			for k := range claim.Spec.Devices.Requests[j].FirstAvailable {
				all = append(all, requestPlace{i, j, k})
			}
		}
	}
	return all
}

// nameOf names a request for people: with its claim, if there are several.
func (s *scenario) nameOf(at requestPlace) string {
	name := at.in(s.claims).name
	if len(s.claims) > 1 {
		name = s.claims[at.claim].Name + "." + name
	}
	return name
}

// extended reports whether a claim is the scheduler's own, for extended resources.
func (s *scenario) extended(claim int) bool {
	return s.x.PodClaims[s.x.Claims[claim].Index].ExtendedResources
}

// askedFacts lists what the claims ask for: numbers, selectors conjunct by
// conjunct, capacities, constraints.
func (s *scenario) askedFacts() {
	for _, at := range places(s.claims) {
		if s.extended(at.claim) {
			s.extendedFact(at)
		} else {
			s.requestFacts(at)
		}
	}
	s.presenceFacts()
	for i, claim := range s.claims {
		for j, c := range claimspec.Constraints(claim) {
			text := "all devices must have " + c.String()
			if c.Distinct {
				text = "devices must have " + c.String()
			}
			s.facts = append(s.facts, fact{
				kind: factConstraint, text: text, at: requestPlace{claim: i}, constraint: j,
				evidence: api.Evidence{Object: whatif.ClaimObject(claim), Path: c.Path, Found: string(c.Attribute)},
			})
		}
	}
}

// presenceFacts lists the requests as such, if there are several.
func (s *scenario) presenceFacts() {
	var list []fact
	for i, claim := range s.claims {
		for j := range claim.Spec.Devices.Requests {
			r := &claim.Spec.Devices.Requests[j]
			at := requestPlace{i, j, -1}
			title := funnel.RequestTitle(s.x.Question, i, r.Name)
			text := title + " needs a device"
			if len(r.FirstAvailable) > 0 {
				text = title + " needs one of its alternatives"
			} else {
				text += " of class " + r.Exactly.DeviceClassName
			}
			list = append(list, fact{
				kind: factRequest, at: at, text: text,
				evidence: api.Evidence{Object: whatif.ClaimObject(claim), Path: fmt.Sprintf("spec.devices.requests[%d]", j), Found: r.Name},
			})
		}
	}
	if len(list) > 1 {
		s.facts = append(s.facts, list...)
	}
}

// requestName is [scenario.nameOf] for a request as a whole.
func (s *scenario) requestName(at requestPlace) string {
	name := s.claims[at.claim].Spec.Devices.Requests[at.request].Name
	if len(s.claims) > 1 {
		name = s.claims[at.claim].Name + "." + name
	}
	return name
}

func (s *scenario) requestFacts(at requestPlace) {
	claim := s.claims[at.claim]
	holder, path, name := whatif.ClaimObject(claim), at.path(), s.nameOf(at)
	r := at.in(s.claims)
	all := *r.mode == resourceapi.DeviceAllocationModeAll
	switch {
	case all:
		s.facts = append(s.facts, fact{
			kind: factAll, at: at, text: fmt.Sprintf("request %s needs all devices that match", name),
			evidence: api.Evidence{Object: holder, Path: path + ".allocationMode", Found: "All"},
		})
	case *r.count > 1:
		text := fmt.Sprintf("request %s needs %d devices", name, *r.count)
		if *r.count > resourceapi.AllocationResultsMaxSize {
			text += fmt.Sprintf(", and a claim can have at most %d", resourceapi.AllocationResultsMaxSize)
		}
		s.facts = append(s.facts, fact{
			kind: factCount, at: at, text: text,
			evidence: api.Evidence{Object: holder, Path: path + ".count", Found: strconv.FormatInt(*r.count, 10)},
		})
	}
	for k, each := range *r.selectors {
		if each.CEL == nil || all {
			// Without its selectors, a request for all would want even more.
			continue
		}
		compiled := s.x.Selectors.Compile(each.CEL.Expression)
		for c := range compiled.Conjuncts {
			s.facts = append(s.facts, fact{
				kind: factSelector, at: at, selector: k, conjunct: c,
				text: fmt.Sprintf("request %s requires %s", name, &compiled.Conjuncts[c]),
				evidence: api.Evidence{
					Object: holder, Path: fmt.Sprintf("%s.selectors[%d].cel.expression", path, k), Found: compiled.Conjuncts[c].Expression,
				},
			})
		}
	}
	if *r.capacity == nil {
		return
	}
	for _, capacity := range slices.Sorted(maps.Keys((*r.capacity).Requests)) {
		quantity := (*r.capacity).Requests[capacity]
		s.facts = append(s.facts, fact{
			kind: factCapacity, at: at, capacity: capacity, unknown: !slices.Contains(s.capacities(), string(capacity)),
			text:     fmt.Sprintf("request %s requires %s of %s", name, selector.QuantityText(quantity), capacity),
			evidence: api.Evidence{Object: holder, Path: fmt.Sprintf("%s.capacity.requests[%s]", path, capacity), Found: quantity.String()},
		})
	}
}

// capacities are the names of the capacities that devices of the node have, sorted.
func (s *scenario) capacities() []string {
	names := map[string]bool{}
	for _, pool := range s.x.Cluster.Pools[s.node.Name] {
		for i := range pool.Devices {
			for name := range pool.Devices[i].Capacity {
				names[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// extendedFact is what a container asks for.
func (s *scenario) extendedFact(at requestPlace) {
	count := *at.in(s.claims).count
	place, ok := s.extendedPlace(at)
	if !ok || count <= 1 {
		return
	}
	s.facts = append(s.facts, fact{
		kind: factCount, at: at,
		text:     fmt.Sprintf("container %s requests %d of %s", place.Container.Name, count, place.Resource),
		evidence: api.Evidence{Object: whatif.Object(api.KindPod, s.x.Pod.Namespace, s.x.Pod.Name), Path: place.Path, Found: strconv.FormatInt(count, 10)},
	})
}

// extendedPlace finds what a request of the claim for extended resources stands
// for.
func (s *scenario) extendedPlace(at requestPlace) (funnel.ExtendedPlace, bool) {
	return funnel.ExtendedRequestOf(s.x.Question, s.claims[at.claim], at.in(s.claims).name)
}

// wayFacts lists what is in the way on the node.
func (s *scenario) wayFacts() {
	s.restrictionFacts()
	s.poolFacts()
	if s.x.Cluster.Alloc.Facts.Gates.Enabled("DRADeviceTaints") {
		s.taintFacts()
	}
	s.holderFacts()
	s.counterFacts()
	s.classFacts()
}

// restrictionFacts lists why the node does not take the pod.
func (s *scenario) restrictionFacts() {
	for _, u := range funnel.Misfits(s.x.Question, s.node) {
		misfit := u.Misfit
		text := misfit.Reason
		if strings.HasPrefix(misfit.Path, "status.allocatable") {
			text += fmt.Sprintf(": %s required, %s", misfit.Wanted, misfit.Found)
		}
		s.facts = append(s.facts, fact{
			kind: factRestriction, text: text, misfit: &misfit, holder: u.Claim, evidence: u.Evidence(),
		})
	}
}

// poolFacts lists the pools of the node of which slices are missing, and the
// feature gates without which slices and devices cannot be used.
func (s *scenario) poolFacts() {
	var gates []string
	gate := func(name, holder, path, what string) {
		if name == "" || slices.Contains(gates, name) || s.x.Cluster.Alloc.Facts.Gates.Enabled(name) {
			return
		}
		gates = append(gates, name)
		s.facts = append(s.facts, fact{
			kind: factGate, gate: name, text: fmt.Sprintf("the feature gate %s is off, which %s needs", name, what),
			evidence: api.Evidence{Object: holder, Path: path, Required: name + "=true"},
		})
	}
	pools := s.x.Cluster.Pools[s.node.Name]
	for i := range pools {
		for j := range pools[i].Ignored {
			ignored := &pools[i].Ignored[j]
			gate(ignored.Gate, whatif.Object("ResourceSlice", "", ignored.Slice.Name), "", "slice "+ignored.Slice.Name)
		}
		for j := range pools[i].Devices {
			d := &pools[i].Devices[j]
			if len(d.BindingConditions) > 0 {
				gate("DRADeviceBindingConditions", fieldpath.Slice(d), fieldpath.Device(d, "bindingConditions"), "device "+d.ID.Device)
				gate("DRAResourceClaimDeviceStatus", fieldpath.Slice(d), fieldpath.Device(d, "bindingConditions"), "device "+d.ID.Device)
			}
			if len(d.ConsumesCounters) > 0 {
				gate("DRAPartitionableDevices", fieldpath.Slice(d), fieldpath.Device(d, "consumesCounters"), "device "+d.ID.Device)
			}
		}
	}
	for i := range pools {
		if pool := pools[i]; pool.Incomplete {
			s.facts = append(s.facts, fact{
				kind: factPool, pool: pool.Pool,
				text: fmt.Sprintf("pool %s of %s is incomplete: %s", pool.Pool.Name, pool.Pool.Driver, pool.Pool.WhyIncomplete()),
				evidence: api.Evidence{
					Object: fieldpath.Pool(pool.Pool), Path: "spec.pool.resourceSliceCount",
					Found: english.Count(len(pool.Pool.Slices), "slice"), Required: strconv.FormatInt(pool.Pool.Expected, 10),
				},
			})
		}
	}
}

// taintFacts lists the taints on the node's devices that a request does not
// tolerate.
func (s *scenario) taintFacts() {
	type seen struct{ key, value, effect string }
	type occurrence struct {
		taint   resourceapi.DeviceTaint
		device  *cluster.Device
		devices []string
	}
	found := map[seen]occurrence{}
	pools := s.x.Cluster.Pools[s.node.Name]
	for i := range pools {
		for j := range pools[i].Devices {
			d := &pools[i].Devices[j]
			for _, taint := range d.Taints {
				if taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute {
					key := seen{taint.Key, taint.Value, string(taint.Effect)}
					found[key] = occurrence{taint, d, append(found[key].devices, d.ID.Device)}
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value), cmp.Compare(a.effect, b.effect))
	})
	for _, key := range keys {
		taint, device := found[key].taint, found[key].device
		if len(intolerant(s.claims, taint)) == 0 {
			continue
		}
		s.facts = append(s.facts, fact{
			kind: factTaint, taint: taint, tainted: device,
			text:     fmt.Sprintf("taint %s on %s is not tolerated", taint, english.Sample(found[key].devices, 4)),
			evidence: fieldpath.TaintEvidence(s.x.Cluster.Alloc.Facts, device, taint),
		})
	}
}

// intolerant lists the requests that do not tolerate a taint.
func intolerant(claims []*resourceapi.ResourceClaim, taint resourceapi.DeviceTaint) []requestPlace {
	var list []requestPlace
	for _, at := range places(claims) {
		if !slices.ContainsFunc(*at.in(claims).tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, taint) }) {
			list = append(list, at)
		}
	}
	return list
}

// holderFacts lists the claims that hold something on the node.
func (s *scenario) holderFacts() {
	for _, h := range s.holders {
		s.facts = append(s.facts, fact{
			kind: factHolder, holder: h.claim,
			text:     fmt.Sprintf("%s allocated to claim %s/%s", areText(h.devices), h.claim.Namespace, h.claim.Name),
			evidence: api.Evidence{Object: whatif.ClaimObject(h.claim), Path: "status.allocation.devices.results"},
		})
	}
}

// counterFacts lists the counter sets that devices of the node share: what one
// takes, others cannot have, whichever claim has it.
func (s *scenario) counterFacts() {
	type set struct {
		pool *cluster.Pool
		name string
	}
	users, grouped := map[set][]string{}, map[set]bool{}
	var sets []set
	pools := s.x.Cluster.Pools[s.node.Name]
	for i := range pools {
		for j := range pools[i].Devices {
			d := &pools[i].Devices[j]
			for _, consumption := range d.ConsumesCounters {
				key := set{d.Pool, consumption.CounterSet}
				if users[key] == nil {
					sets = append(sets, key)
				}
				users[key] = append(users[key], d.ID.Device)
				grouped[key] = grouped[key] || len(consumption.CompatibilityGroups) > 0
			}
		}
	}
	for _, key := range sets {
		if len(users[key]) < 2 {
			continue
		}
		of := fmt.Sprintf("%s share counter set %s of pool %s", english.JoinAnd(shortList(users[key])), key.name, key.pool.Name)
		evidence := api.Evidence{Object: fieldpath.Pool(key.pool), Path: fmt.Sprintf("spec.sharedCounters[name=%s]", key.name)}
		s.facts = append(s.facts, fact{kind: factCounters, text: of, pool: key.pool, counterSet: key.name, evidence: evidence})
		if grouped[key] && s.x.Cluster.Alloc.Facts.Gates.Enabled("DRADeviceCompatibilityGroups") {
			s.facts = append(s.facts, fact{
				kind: factGroups, pool: key.pool, counterSet: key.name, evidence: evidence,
				text: fmt.Sprintf("devices on counter set %s of pool %s must have a compatibility group in common", key.name, key.pool.Name),
			})
		}
	}
}

// shortList is a list with the end of a long one in one item.
func shortList(items []string) []string {
	const most = 4
	if len(items) <= most {
		return items
	}
	return append(slices.Clone(items[:most]), fmt.Sprintf("%d more", len(items)-most))
}

// classFacts lists what the classes select, conjunct by conjunct. That a class
// is for one driver is what it is, and never doubted.
func (s *scenario) classFacts() {
	var seen []string
	for _, at := range places(s.claims) {
		name := *at.in(s.claims).class
		class := s.x.Snap.Class(name)
		if class == nil || slices.Contains(seen, name) || *at.in(s.claims).mode == resourceapi.DeviceAllocationModeAll {
			continue
		}
		seen = append(seen, name)
		for k, each := range class.Spec.Selectors {
			if each.CEL == nil {
				continue
			}
			compiled := s.x.Selectors.Compile(each.CEL.Expression)
			for c := range compiled.Conjuncts {
				if reads := compiled.Conjuncts[c].Reads; len(reads) == 1 && reads[0].Kind == selector.KindDriver {
					continue
				}
				s.facts = append(s.facts, fact{
					kind: factClass, class: class, selector: k, conjunct: c,
					text: fmt.Sprintf("class %s has only devices with %s", class.Name, &compiled.Conjuncts[c]),
					evidence: api.Evidence{
						Object: whatif.Object("DeviceClass", "", class.Name), Path: fmt.Sprintf("spec.selectors[%d].cel.expression", k),
						Found: compiled.Conjuncts[c].Expression,
					},
				})
			}
		}
	}
}

// areText names devices as the subject of a sentence: "gpu-0 and gpu-1 are".
func areText(devices []string) string {
	if len(devices) == 1 {
		return devices[0] + " is"
	}
	return english.JoinAnd(shortList(devices)) + " are"
}
