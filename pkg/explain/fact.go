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
)

// remedy is a change to the claims, as people make it.
type remedy struct {
	change string
	// operation is the JSON patch operation below the claim's spec; empty if
	// there is none.
	operation string
}

// askedFacts lists what the claims ask for.
func (s *scene) askedFacts(x *inquiry, node *corev1.Node) {
	for i, claim := range s.claims {
		for j := range claim.Spec.Devices.Requests {
			if claim.Spec.Devices.Requests[j].Exactly != nil {
				s.requestFacts(x, i, j)
			}
		}
		for j, c := range claimConstraints(claim) {
			s.facts = append(s.facts, fact{
				text:     "all devices have " + c.String(),
				evidence: Evidence{Object: claimObject(claim), Path: c.path, Found: string(c.attribute)},
				relax:    func(claims []*resourceapi.ResourceClaim) { dropConstraint(claims[i], c) },
				remedy:   remedy{change: "drop the constraint: " + c.String(), operation: fmt.Sprintf(`{"op": "remove", "path": "/devices/constraints/%d"}`, j)},
			})
			if c.distinct {
				s.facts[len(s.facts)-1].text = "each device has a " + c.String()
			}
		}
	}
	s.taintFacts(x, node)
}

func dropConstraint(claim *resourceapi.ResourceClaim, c constraint) {
	claim.Spec.Devices.Constraints = slices.DeleteFunc(claim.Spec.Devices.Constraints, func(d resourceapi.DeviceConstraint) bool {
		return (d.MatchAttribute != nil && *d.MatchAttribute == c.attribute && !c.distinct ||
			d.DistinctAttribute != nil && *d.DistinctAttribute == c.attribute && c.distinct) && slices.Equal(d.Requests, c.requests)
	})
}

// requestFacts lists what one request asks for: a number, selectors conjunct
// by conjunct, capacities.
func (s *scene) requestFacts(x *inquiry, i, j int) {
	claim := s.claims[i]
	request := &claim.Spec.Devices.Requests[j]
	holder, path := claimObject(claim), fmt.Sprintf("spec.devices.requests[%d].exactly", j)
	exactly := func(claims []*resourceapi.ResourceClaim) *resourceapi.ExactDeviceRequest {
		return claims[i].Spec.Devices.Requests[j].Exactly
	}
	switch exact := request.Exactly; {
	case exact.AllocationMode == resourceapi.DeviceAllocationModeAll:
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("request %s wants all devices that match", request.Name),
			evidence: Evidence{Object: holder, Path: path + ".allocationMode", Found: "All"},
			relax: func(claims []*resourceapi.ResourceClaim) {
				exactly(claims).AllocationMode, exactly(claims).Count = resourceapi.DeviceAllocationModeExactCount, 1
			},
			remedy: remedy{change: fmt.Sprintf("ask for a number of devices in request %s, not for all", request.Name)},
		})
	case exact.Count > 1:
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("request %s wants %d devices", request.Name, exact.Count),
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
		for _, part := range compiled.conjuncts {
			s.facts = append(s.facts, fact{
				text:     fmt.Sprintf("request %s wants %s", request.Name, part.text()),
				evidence: Evidence{Object: holder, Path: fmt.Sprintf("%s.selectors[%d].cel.expression", path, k), Found: part.expression},
				relax: func(claims []*resourceapi.ResourceClaim) {
					list := exactly(claims).Selectors
					list[k].CEL = &resourceapi.CELDeviceSelector{Expression: withoutConjunct(list[k].CEL.Expression, compiled, part)}
				},
				remedy: remedy{
					change: fmt.Sprintf("do not insist on %s in request %s", part.text(), request.Name),
					operation: fmt.Sprintf(`{"op": "replace", "path": "/devices/requests/%d/exactly/selectors/%d/cel/expression", "value": %q}`,
						j, k, withoutConjunct(selector.CEL.Expression, compiled, part)),
				},
			})
		}
	}
	if request.Exactly.Capacity == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(request.Exactly.Capacity.Requests)) {
		quantity := request.Exactly.Capacity.Requests[name]
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("request %s wants %s of %s", request.Name, quantity.String(), name),
			evidence: Evidence{Object: holder, Path: fmt.Sprintf("%s.capacity.requests[%s]", path, name), Found: quantity.String()},
			relax: func(claims []*resourceapi.ResourceClaim) {
				exactly(claims).Capacity.Requests[name] = resource.Quantity{}
			},
			remedy: remedy{change: fmt.Sprintf("ask for less than %s of %s in request %s", quantity.String(), name, request.Name)},
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

// withoutConjunct gives an expression without one of its parts. Parts that
// were left out before stay left out.
func withoutConjunct(expression string, compiled *selector, part conjunct) string {
	var rest []string
	for _, other := range compiled.conjuncts {
		if other.expression != part.expression && (expression == compiled.expression || strings.Contains(expression, other.expression)) {
			rest = append(rest, other.expression)
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
	devices := map[seen][]string{}
	for _, pool := range x.site.pools[node.Name] {
		for i := range pool.Devices {
			d := &pool.Devices[i]
			for _, taint := range d.Taints {
				if taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute {
					key := seen{taint.Key, taint.Value, string(taint.Effect)}
					devices[key] = append(devices[key], d.ID.Device)
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(devices), func(a, b seen) int {
		return strings.Compare(a.key+a.value+a.effect, b.key+b.value+b.effect)
	})
	for _, key := range keys {
		taint := resourceapi.DeviceTaint{Key: key.key, Value: key.value, Effect: resourceapi.DeviceTaintEffect(key.effect)}
		toleration := resourceapi.DeviceToleration{Key: key.key, Operator: resourceapi.DeviceTolerationOpExists, Effect: taint.Effect}
		s.facts = append(s.facts, fact{
			text:     fmt.Sprintf("taint %s on %s is not tolerated", taintText(taint), sample(devices[key], 4)),
			evidence: Evidence{Object: object("Node", "", node.Name), Found: taintText(taint)},
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
			remedy: remedy{change: fmt.Sprintf("tolerate the taint %s, if the workload can live with it", taintText(taint))},
		})
	}
}
