// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
)

// selectorPart is one conjunct of a selector: that of claim, request and selector by
// their indices.
type selectorPart struct{ claim, request, selector, conjunct int }

// remedy is a change to the claims, as people make it; empty if there is none.
type remedy struct {
	change string
	// claim is the index of the claim that it changes.
	claim int
	// operation is the JSON patch operation below the claim's spec; empty if
	// there is none.
	operation string
}

// askedFacts lists what the claims ask for.
func (s *scene) askedFacts(x *inquiry, node *corev1.Node) {
	for i, claim := range s.claims {
		if x.subject.claims[x.claims[i].index].ExtendedResources {
			// It is the scheduler's, nobody can ask for something else there.
			continue
		}
		for j := range claim.Spec.Devices.Requests {
			if claim.Spec.Devices.Requests[j].Exactly != nil {
				s.requestFacts(x, i, j)
			}
		}
		for j, c := range claimConstraints(claim) {
			s.facts = append(s.facts, fact{
				text:     "all devices have " + c.String(),
				evidence: Evidence{Object: claimObject(claim), Path: c.path, Found: string(c.attribute)},
				relax: func(claims []*resourceapi.ResourceClaim) {
					// Left in its place, so that the others keep theirs.
					claims[i].Spec.Devices.Constraints[j] = resourceapi.DeviceConstraint{}
				},
				remedy: remedy{claim: i, change: "drop the constraint: " + c.String(), operation: fmt.Sprintf(`{"op": "remove", "path": "/devices/constraints/%d"}`, j)},
			})
			if c.distinct {
				s.facts[len(s.facts)-1].text = "each device has a " + c.String()
			}
		}
	}
	s.taintFacts(x, node)
}

// requestFacts lists what one request asks for: a number, selectors conjunct
// by conjunct, capacities.
func (s *scene) requestFacts(x *inquiry, i, j int) {
	claim := s.claims[i]
	request := &claim.Spec.Devices.Requests[j]
	holder, path := claimObject(claim), fmt.Sprintf("spec.devices.requests[%d].exactly", j)
	name := request.Name
	if len(s.claims) > 1 {
		name = claim.Name + "." + name
	}
	exactly := func(claims []*resourceapi.ResourceClaim) *resourceapi.ExactDeviceRequest {
		return claims[i].Spec.Devices.Requests[j].Exactly
	}
	switch exact := request.Exactly; {
	case exact.AllocationMode == resourceapi.DeviceAllocationModeAll:
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("request %s wants all devices that match", name),
			evidence: Evidence{Object: holder, Path: path + ".allocationMode", Found: "All"},
			relax: func(claims []*resourceapi.ResourceClaim) {
				exactly(claims).AllocationMode, exactly(claims).Count = resourceapi.DeviceAllocationModeExactCount, 1
			},
			remedy: remedy{claim: i, change: fmt.Sprintf("ask for a number of devices in request %s, not for all", name)},
		})
	case exact.Count > 1:
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("request %s wants %d devices", name, exact.Count),
			counts:   &[2]int{i, j},
			evidence: Evidence{Object: holder, Path: path + ".count", Found: fmt.Sprint(exact.Count)},
			relax:    func(claims []*resourceapi.ResourceClaim) { exactly(claims).Count = 1 },
		})
	}
	for k, selector := range request.Exactly.Selectors {
		if selector.CEL == nil || request.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll {
			// Without its selectors, a request for all would want even more.
			continue
		}
		compiled := x.selectors.compile(selector.CEL.Expression)
		for c := range compiled.conjuncts {
			conjunct := &compiled.conjuncts[c]
			s.facts = append(s.facts, fact{
				text:     fmt.Sprintf("request %s wants %s", name, conjunct.text()),
				evidence: Evidence{Object: holder, Path: fmt.Sprintf("%s.selectors[%d].cel.expression", path, k), Found: conjunct.expression},
				drops:    &selectorPart{i, j, k, c},
				remedy: remedy{
					claim:  i,
					change: fmt.Sprintf("do not insist on %s in request %s", conjunct.text(), name),
					operation: fmt.Sprintf(`{"op": "replace", "path": "/devices/requests/%d/exactly/selectors/%d/cel/expression", "value": %q}`,
						j, k, compiled.without([]int{c})),
				},
			})
		}
	}
	if request.Exactly.Capacity == nil {
		return
	}
	for _, capacity := range slices.Sorted(maps.Keys(request.Exactly.Capacity.Requests)) {
		quantity := request.Exactly.Capacity.Requests[capacity]
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("request %s wants %s of %s", name, quantity.String(), capacity),
			evidence: Evidence{Object: holder, Path: fmt.Sprintf("%s.capacity.requests[%s]", path, capacity), Found: quantity.String()},
			relax: func(claims []*resourceapi.ResourceClaim) {
				exactly(claims).Capacity.Requests[capacity] = resource.Quantity{}
			},
		})
	}
}

// text says what a conjunct asks for.
func (c conjunct) text() string {
	if c.wanted == c.expression || len(c.reads) != 1 {
		return c.expression
	}
	return c.reads[0].short() + " " + c.wanted
}

// without gives the expression without some of its conjuncts.
func (sel *selector) without(dropped []int) string {
	var rest []string
	for i := range sel.conjuncts {
		if !slices.Contains(dropped, i) {
			rest = append(rest, "("+sel.conjuncts[i].expression+")")
		}
	}
	if len(rest) == 0 {
		return "true"
	}
	return strings.Join(rest, " && ")
}

// taintFacts lists the taints on the node's devices that a request does not
// tolerate.
func (s *scene) taintFacts(x *inquiry, node *corev1.Node) {
	type seen struct{ key, value, effect string }
	devices, holders := map[seen][]string{}, map[seen]*allocator.Device{}
	for _, pool := range x.site.pools[node.Name] {
		for i := range pool.Devices {
			d := &pool.Devices[i]
			for _, taint := range d.Taints {
				if taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute {
					key := seen{taint.Key, taint.Value, string(taint.Effect)}
					devices[key], holders[key] = append(devices[key], d.ID.Device), d
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(devices), func(a, b seen) int {
		return strings.Compare(a.key+a.value+a.effect, b.key+b.value+b.effect)
	})
	for _, key := range keys {
		taint := resourceapi.DeviceTaint{Key: key.key, Value: key.value, Effect: resourceapi.DeviceTaintEffect(key.effect)}
		if s.tolerated(taint) {
			continue
		}
		toleration := resourceapi.DeviceToleration{Key: key.key, Operator: resourceapi.DeviceTolerationOpEqual, Value: key.value, Effect: taint.Effect}
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("taint %s on %s is not tolerated", taintText(taint), sample(devices[key], 4)),
			evidence: taintEvidence(x.site.alloc, holders[key], taint),
			relax: func(claims []*resourceapi.ResourceClaim) {
				for _, claim := range claims {
					for j := range claim.Spec.Devices.Requests {
						r := &claim.Spec.Devices.Requests[j]
						if r.Exactly != nil {
							r.Exactly.Tolerations = append(r.Exactly.Tolerations, toleration)
						}
						for k := range r.FirstAvailable {
							r.FirstAvailable[k].Tolerations = append(r.FirstAvailable[k].Tolerations, toleration)
						}
					}
				}
			},
			remedy: s.tolerate(x, taint),
		})
	}
}

// tolerate is the remedy for a taint. The scheduler's own claim for extended
// resources cannot tolerate anything.
func (s *scene) tolerate(x *inquiry, taint resourceapi.DeviceTaint) remedy {
	for i := range x.claims {
		if x.subject.claims[x.claims[i].index].ExtendedResources {
			return remedy{}
		}
	}
	return remedy{change: fmt.Sprintf("tolerate the taint %s, if the workload can live with it", taintText(taint))}
}

// tolerated says whether all requests tolerate a taint already.
func (s *scene) tolerated(taint resourceapi.DeviceTaint) bool {
	for _, claim := range s.claims {
		for _, alternatives := range requestsOf(claim) {
			for _, r := range alternatives {
				if !slices.ContainsFunc(r.tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, taint) }) {
					return false
				}
			}
		}
	}
	return true
}

func taintEvidence(alloc *allocator.Allocator, d *allocator.Device, taint resourceapi.DeviceTaint) Evidence {
	holder, path := tainter(alloc, d, taint)
	return Evidence{Object: holder, Path: path, Found: taintText(taint)}
}
