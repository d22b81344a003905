// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// listing lists the facts of one node.
type listing struct {
	whole *Case
	node  *corev1.Node
	// claims are the waiting claims.
	claims  []*resourceapi.ResourceClaim
	holders []holder
	facts   []fact
}

// holder is an allocated claim and what it has of the scenario.
type holder struct {
	claim   *resourceapi.ResourceClaim
	devices []string
}

// nameOf names a request for people: with its claim, if there are several.
func (l *listing) nameOf(at requestPlace) string {
	return nameIn(l.claims, at)
}

// extended reports whether a claim is the scheduler's own, for extended resources.
func (l *listing) extended(claim int) bool {
	return l.whole.PodClaims[l.whole.Claims[claim].Index].ExtendedResources
}

// askedFacts lists what the claims ask for: numbers, selectors conjunct by
// conjunct, capacities, constraints.
func (l *listing) askedFacts() {
	for _, at := range places(l.claims) {
		if l.extended(at.claim) {
			l.extendedFact(at)
		} else {
			l.requestFacts(at)
		}
	}
	l.presenceFacts()
	for i, claim := range l.claims {
		for j, c := range cluster.Constraints(claim) {
			text := "all devices must have " + c.String()
			if c.Distinct {
				text = "devices must have " + c.String()
			}
			l.facts = append(l.facts, fact{
				kind: factConstraint, text: text, at: requestPlace{claim: i}, constraint: j,
				evidence: specEvidence(claim, c.Path, string(c.Attribute)),
			})
		}
	}
}

// presenceFacts lists the requests as such, if there are several.
func (l *listing) presenceFacts() {
	var list []fact
	for i, claim := range l.claims {
		for j := range claim.Spec.Devices.Requests {
			r := &claim.Spec.Devices.Requests[j]
			at := requestPlace{i, j, -1}
			title := eligibility.RequestTitle(l.whole.Question, i, r.Name)
			text := title + " needs a device"
			if len(r.FirstAvailable) > 0 {
				text = title + " needs one of its alternatives"
			} else {
				text += " of class " + r.Exactly.DeviceClassName
			}
			list = append(list, fact{
				kind: factRequest, at: at, text: text,
				evidence: specEvidence(claim, fmt.Sprintf("spec.devices.requests[%d]", j), r.Name),
			})
		}
	}
	if len(list) > 1 {
		l.facts = append(l.facts, list...)
	}
}

// requestName is like [scenario.nameOf], for a request as a whole.
func (l *listing) requestName(at requestPlace) string {
	name := l.claims[at.claim].Spec.Devices.Requests[at.request].Name
	if len(l.claims) > 1 {
		name = cluster.ClaimTitle(l.claims[at.claim]) + "." + name
	}
	return name
}

// specEvidence returns what a field of a claim's spec says.
func specEvidence(claim *resourceapi.ResourceClaim, path, found string) api.Evidence {
	object, path := cluster.ClaimSpecPath(claim, path)
	return api.Evidence{Object: object, Path: path, Found: found}
}

func (l *listing) requestFacts(at requestPlace) {
	claim := l.claims[at.claim]
	path, name := at.path(), l.nameOf(at)
	r := at.in(l.claims)
	all := *r.mode == resourceapi.DeviceAllocationModeAll
	switch {
	case all:
		l.facts = append(l.facts, fact{
			kind: factAll, at: at, text: fmt.Sprintf("request %s needs all devices that match", name),
			evidence: specEvidence(claim, path+".allocationMode", "All"),
		})
	case *r.count > 1:
		text := fmt.Sprintf("request %s needs %d devices", name, *r.count)
		if *r.count > resourceapi.AllocationResultsMaxSize {
			text += fmt.Sprintf(", and a claim can have at most %d", resourceapi.AllocationResultsMaxSize)
		}
		l.facts = append(l.facts, fact{
			kind: factCount, at: at, text: text,
			evidence: specEvidence(claim, path+".count", strconv.FormatInt(*r.count, 10)),
		})
	}
	for k, each := range *r.selectors {
		if each.CEL == nil || all {
			// Without its selectors, a request for all would want even more.
			continue
		}
		compiled := l.whole.Selectors.Compile(each.CEL.Expression)
		for c := range compiled.Conjuncts {
			l.facts = append(l.facts, fact{
				kind: factSelector, at: at, selector: k, conjunct: c,
				text:     fmt.Sprintf("request %s requires %s", name, &compiled.Conjuncts[c]),
				evidence: specEvidence(claim, fmt.Sprintf("%s.selectors[%d].cel.expression", path, k), compiled.Conjuncts[c].Expression),
			})
		}
	}
	if *r.capacity == nil {
		return
	}
	for _, capacity := range slices.Sorted(maps.Keys((*r.capacity).Requests)) {
		quantity := (*r.capacity).Requests[capacity]
		l.facts = append(l.facts, fact{
			kind: factCapacity, at: at, capacity: capacity, unknown: !slices.Contains(l.capacities(at), string(capacity)),
			text:     fmt.Sprintf("request %s requires %s of %s", name, selector.QuantityText(quantity), capacity),
			evidence: specEvidence(claim, fmt.Sprintf("%s.capacity.requests[%s]", path, capacity), quantity.String()),
		})
	}
}

// capacities returns the names of all capacities of the devices of the node that a request
// may use.
func (l *listing) capacities(at requestPlace) []string {
	names := map[string]bool{}
	for _, pool := range l.whole.Reach.Pools[l.node.Name] {
		for i := range pool.Devices {
			if !l.mayUse(at, &pool.Devices[i]) {
				continue
			}
			for name := range pool.Devices[i].Capacity {
				names[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// extendedFact adds the request of a container.
func (l *listing) extendedFact(at requestPlace) {
	count := *at.in(l.claims).count
	place, ok := l.extendedPlace(at)
	if !ok || count <= 1 {
		return
	}
	l.facts = append(l.facts, fact{
		kind: factCount, at: at,
		text:     fmt.Sprintf("container %s requests %d of %s", place.Container.Name, count, place.Resource),
		evidence: api.Evidence{Object: api.Ref(api.KindPod, l.whole.Pod.Namespace, l.whole.Pod.Name), Path: place.Path, Found: strconv.FormatInt(count, 10)},
	})
}

// extendedPlace finds what a request of the claim for extended resources stands
// for.
func (l *listing) extendedPlace(at requestPlace) (eligibility.ExtendedPlace, bool) {
	return eligibility.ExtendedRequestOf(l.whole.Question, l.claims[at.claim], at.in(l.claims).name)
}

// wayFacts lists the obstacles on the node.
func (l *listing) wayFacts() {
	l.restrictionFacts()
	l.poolFacts()
	if l.whole.Cluster.Gates.Enabled("DRADeviceTaints") {
		l.taintFacts()
	}
	l.holderFacts()
	l.counterFacts()
	l.classFacts()
}

// restrictionFacts lists why the node does not take the pod.
func (l *listing) restrictionFacts() {
	for _, u := range eligibility.Misfits(l.whole.Question, l.node) {
		misfit := u.Misfit
		l.facts = append(l.facts, fact{
			kind: factRestriction, text: misfit.Text(l.whole.Cluster.Snapshot), misfit: &misfit, holder: u.Claim, evidence: u.Evidence(),
		})
	}
}

// poolFacts lists the pools of the node of which slices are missing, and the
// feature gates without which slices and devices cannot be used.
func (l *listing) poolFacts() {
	var gates []string
	gate := func(name string, holder api.ObjectRef, path, what string) {
		if name == "" || slices.Contains(gates, name) || l.whole.Cluster.Gates.Enabled(name) {
			return
		}
		gates = append(gates, name)
		l.facts = append(l.facts, fact{
			kind: factGate, gate: name, text: fmt.Sprintf("the feature gate %s is off, which %s needs", name, what),
			evidence: api.Evidence{Object: holder, Path: path, Required: name + "=true"},
		})
	}
	pools := l.whole.Reach.Pools[l.node.Name]
	for i := range pools {
		for j := range pools[i].Ignored {
			ignored := &pools[i].Ignored[j]
			gate(ignored.Gate, api.Ref("ResourceSlice", "", ignored.Slice.Name), "", "slice "+ignored.Slice.Name)
		}
		for j := range pools[i].Devices {
			d := &pools[i].Devices[j]
			if len(d.BindingConditions) > 0 {
				gate("DRADeviceBindingConditions", cluster.SliceObject(d), cluster.DevicePath(d, "bindingConditions"), "device "+d.ID.Device)
				gate("DRAResourceClaimDeviceStatus", cluster.SliceObject(d), cluster.DevicePath(d, "bindingConditions"), "device "+d.ID.Device)
			}
			if len(d.ConsumesCounters) > 0 {
				gate("DRAPartitionableDevices", cluster.SliceObject(d), cluster.DevicePath(d, "consumesCounters"), "device "+d.ID.Device)
			}
		}
	}
	for i := range pools {
		if pool := pools[i]; pool.Incomplete {
			l.facts = append(l.facts, fact{
				kind: factPool, pool: pool.Pool,
				text: fmt.Sprintf("pool %s of %s is incomplete: %s", pool.Pool.Name, pool.Pool.Driver, pool.Pool.WhyIncomplete()),
				evidence: api.Evidence{
					Object: cluster.PoolObject(pool.Pool), Path: "spec.pool.resourceSliceCount",
					Found: english.Count(len(pool.Pool.Slices), "slice"), Required: strconv.FormatInt(pool.Pool.Expected, 10),
				},
			})
		}
	}
}

// taintFacts lists the taints on the node's devices that a request does not
// tolerate.
func (l *listing) taintFacts() {
	type seen struct{ key, value, effect string }
	type occurrence struct {
		taint   resourceapi.DeviceTaint
		device  *cluster.Device
		devices []string
	}
	found := map[seen]occurrence{}
	pools := l.whole.Reach.Pools[l.node.Name]
	for i := range pools {
		for j := range pools[i].Devices {
			d := &pools[i].Devices[j]
			for _, taint := range d.Taints {
				if taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute {
					key := seen{taint.Key, taint.Value, string(taint.Effect)}
					o, known := found[key]
					if !known || taint.TimeAdded.Before(o.taint.TimeAdded) {
						o.taint, o.device = taint, d
					}
					o.devices = append(o.devices, d.ID.Device)
					found[key] = o
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value), cmp.Compare(a.effect, b.effect))
	})
	for _, key := range keys {
		taint, device := found[key].taint, found[key].device
		if len(intolerant(l.claims, taint)) == 0 {
			continue
		}
		l.facts = append(l.facts, fact{
			kind: factTaint, taint: taint, tainted: device,
			text:     fmt.Sprintf("taint %s on %s is not tolerated", taint, english.Sample(found[key].devices, 4)),
			evidence: cluster.TaintEvidence(l.whole.Cluster, device, taint),
		})
	}
}

// holderFacts lists the claims that hold something on the node.
func (l *listing) holderFacts() {
	for _, h := range l.holders {
		l.facts = append(l.facts, fact{
			kind: factHolder, holder: h.claim,
			text:     fmt.Sprintf("%s allocated to claim %s/%s", areText(h.devices), h.claim.Namespace, h.claim.Name),
			evidence: api.Evidence{Object: api.RefTo(api.KindClaim, h.claim), Path: "status.allocation.devices.results"},
		})
	}
}

// counterFacts lists the counter sets that devices of the node share: what one
// takes, others cannot have, whichever claim has it.
func (l *listing) counterFacts() {
	type set struct {
		pool *cluster.Pool
		name string
	}
	users, grouped := map[set][]string{}, map[set]bool{}
	var sets []set
	pools := l.whole.Reach.Pools[l.node.Name]
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
		evidence := api.Evidence{Object: cluster.PoolObject(key.pool), Path: fmt.Sprintf("spec.sharedCounters[name=%s]", key.name)}
		l.facts = append(l.facts, fact{kind: factCounters, text: of, pool: key.pool, counterSet: key.name, evidence: evidence})
		if grouped[key] && l.whole.Cluster.Gates.Enabled("DRADeviceCompatibilityGroups") {
			l.facts = append(l.facts, fact{
				kind: factGroups, pool: key.pool, counterSet: key.name, evidence: evidence,
				text: fmt.Sprintf("devices on counter set %s of pool %s must have a compatibility group in common", key.name, key.pool.Name),
			})
		}
	}
}

// classFacts lists what the classes select, conjunct by conjunct. That a class
// is for one driver is what it is, and never suspected.
func (l *listing) classFacts() {
	var seen []string
	for _, at := range places(l.claims) {
		name := *at.in(l.claims).class
		class := l.whole.Cluster.Snapshot.Class(name)
		if class == nil || slices.Contains(seen, name) || *at.in(l.claims).mode == resourceapi.DeviceAllocationModeAll {
			continue
		}
		seen = append(seen, name)
		for k, each := range class.Spec.Selectors {
			if each.CEL == nil {
				continue
			}
			compiled := l.whole.Selectors.Compile(each.CEL.Expression)
			for c := range compiled.Conjuncts {
				if reads := compiled.Conjuncts[c].Reads; len(reads) == 1 && reads[0].Kind == selector.KindDriver {
					continue
				}
				l.facts = append(l.facts, fact{
					kind: factClass, class: class, selector: k, conjunct: c,
					text: fmt.Sprintf("class %s has only devices with %s", class.Name, &compiled.Conjuncts[c]),
					evidence: api.Evidence{
						Object: api.Ref("DeviceClass", "", class.Name), Path: fmt.Sprintf("spec.selectors[%d].cel.expression", k),
						Found: compiled.Conjuncts[c].Expression,
					},
				})
			}
		}
	}
}

// shortList returns a list with the end of a long one in one item.
func shortList(items []string) []string {
	const most = 4
	if len(items) <= most {
		return items
	}
	return append(slices.Clone(items[:most]), fmt.Sprintf("%d more", len(items)-most))
}

// areText names devices as the subject of a sentence: "gpu-0 and gpu-1 are".
func areText(devices []string) string {
	if len(devices) == 1 {
		return devices[0] + " is"
	}
	return english.JoinAnd(shortList(devices)) + " are"
}

// mayUse reports whether a device is of the class of a request.
func (l *listing) mayUse(at requestPlace, d *cluster.Device) bool {
	if at.claim >= len(l.whole.Claims) || at.request >= len(l.whole.Claims[at.claim].Funnels) {
		return true
	}
	f := l.whole.Claims[at.claim].Funnels[at.request][max(at.alternative, 0)]
	return !f.OtherClass(d)
}
