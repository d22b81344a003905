// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Scenario is one node, its pools and the claims that hold something in them:
// small enough to be tried many times.
type Scenario struct {
	listing

	snap *snapshot.Snapshot
	// assumed are the kinds of facts that the conflict assumes.
	assumed []factKind
}

// maxFacts bounds the work on one conflict.
const maxFacts = 150

// Scenario cuts a node out of the cluster.
func (c *Case) Scenario(node *corev1.Node) (*Scenario, error) {
	claims, err := c.ClaimsFor(node)
	if err != nil {
		return nil, err
	}
	if len(claims) != len(c.Claims) {
		// A device plugin of the node serves one of them.
		return nil, verdict.ErrNoProblem
	}
	s := &Scenario{listing: listing{whole: c, node: node, claims: claims}}
	cut := *c.Cluster.Snapshot
	cut.Nodes, cut.Slices, cut.Claims, cut.TaintRules, cut.Pods = []*corev1.Node{node}, nil, nil, nil, podsOn(c.Question, node.Name)
	at := map[*resourceapi.ResourceClaim]int{}
	for _, pool := range c.Reach.Pools[node.Name] {
		// The taint rules are in the slices already.
		cut.Slices = append(cut.Slices, pool.Pool.Slices...)
		cut.Slices = append(cut.Slices, pool.Pool.Obsolete...)
		for _, slice := range pool.Pool.Slices {
			for i := range slice.Spec.Devices {
				id := cluster.DeviceID{Driver: pool.Pool.Driver, Pool: pool.Pool.Name, Device: slice.Spec.Devices[i].Name}
				for _, h := range c.Cluster.Usage.Holders(id) {
					index, known := at[h.Claim]
					if !known {
						index = len(s.holders)
						at[h.Claim] = index
						s.holders = append(s.holders, holder{claim: h.Claim})
						cut.Claims = append(cut.Claims, h.Claim)
					}
					s.holders[index].devices = append(s.holders[index].devices, id.Device)
				}
			}
		}
	}
	slices.SortFunc(cut.Slices, func(a, b *resourceapi.ResourceSlice) int { return compareObjects(a, b) })
	slices.SortFunc(cut.Claims, func(a, b *resourceapi.ResourceClaim) int { return compareObjects(a, b) })
	s.snap = &cut
	s.askedFacts()
	s.wayFacts()
	return s, nil
}

func compareObjects(a, b metav1.Object) int {
	return slices.Compare([]string{a.GetNamespace(), a.GetName()}, []string{b.GetNamespace(), b.GetName()})
}

// Hypothesis is a scenario in which some facts are given up.
type Hypothesis struct {
	Snap   *snapshot.Snapshot
	Claims []*resourceapi.ResourceClaim
	// Restricted is true if the node is not suitable for the pod.
	Restricted bool
}

// given returns the scenario if only the facts for which holds is true hold.
func (s *Scenario) given(holds func(int) bool) Hypothesis {
	h := Hypothesis{Claims: make([]*resourceapi.ResourceClaim, 0, len(s.claims))}
	for _, claim := range s.claims {
		h.Claims = append(h.Claims, claim.DeepCopy())
	}
	snap := *s.snap
	h.Snap = &snap
	freed := map[*resourceapi.ResourceClaim]bool{}
	complete := map[*cluster.Pool]bool{}
	dropped := map[[2]int]bool{}
	var gates []string
	var parts, classParts, shared []*fact
	for i := range s.facts {
		f := &s.facts[i]
		if holds(i) {
			h.Restricted = h.Restricted || f.kind == factRestriction
			continue
		}
		switch f.kind {
		case factCount:
			*f.at.in(h.Claims).count = 1
		case factAll:
			r := f.at.in(h.Claims)
			*r.mode, *r.count = resourceapi.DeviceAllocationModeExactCount, 1
		case factSelector:
			parts = append(parts, f)
		case factCapacity:
			if requests := (*f.at.in(h.Claims).capacity).Requests; f.unknown {
				delete(requests, f.capacity)
			} else {
				// A share without a request would take the default.
				requests[f.capacity] = resource.Quantity{}
			}
		case factConstraint:
			// Left in its place, so that the others keep theirs.
			h.Claims[f.at.claim].Spec.Devices.Constraints[f.constraint] = resourceapi.DeviceConstraint{}
		case factRequest:
			dropped[[2]int{f.at.claim, f.at.request}] = true
		case factRestriction:
		case factGate:
			gates = append(gates, f.gate)
		case factPool:
			complete[f.pool] = true
		case factTaint:
			for _, at := range intolerant(h.Claims, f.taint) {
				r := at.in(h.Claims)
				*r.tolerations = append(*r.tolerations, tolerationOf(f.taint))
			}
		case factHolder:
			freed[f.holder] = true
		case factCounters, factGroups:
			shared = append(shared, f)
		case factClass:
			classParts = append(classParts, f)
		}
	}
	s.dropParts(h.Claims, parts)
	h.Claims = withoutRequests(h.Claims, dropped)
	h.Snap.Claims = slices.DeleteFunc(slices.Clone(s.snap.Claims), func(c *resourceapi.ResourceClaim) bool { return freed[c] })
	h.Snap.Classes = s.withoutParts(classParts)
	h.Snap.Slices = s.withPools(complete, shared)
	if len(gates) > 0 {
		h.Snap.Gates = maps.Clone(s.snap.Gates)
		for _, gate := range gates {
			h.Snap.Gates[gate] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
		}
	}
	return h
}

// withoutRequests leaves out requests, what constraints say about them, and
// claims that are empty then.
func withoutRequests(claims []*resourceapi.ResourceClaim, dropped map[[2]int]bool) []*resourceapi.ResourceClaim {
	if len(dropped) == 0 {
		return claims
	}
	var rest []*resourceapi.ResourceClaim
	for i, claim := range claims {
		gone := map[string]bool{}
		var requests []resourceapi.DeviceRequest
		for j, r := range claim.Spec.Devices.Requests {
			if dropped[[2]int{i, j}] {
				gone[r.Name] = true
			} else {
				requests = append(requests, r)
			}
		}
		claim.Spec.Devices.Requests = requests
		var constraints []resourceapi.DeviceConstraint
		for _, c := range claim.Spec.Devices.Constraints {
			named := len(c.Requests) > 0
			c.Requests = slices.DeleteFunc(c.Requests, func(name string) bool { return gone[resourceclaim.BaseRequestRef(name)] })
			// Without any name it would be about all requests.
			if !named || len(c.Requests) > 0 {
				constraints = append(constraints, c)
			}
		}
		claim.Spec.Devices.Constraints = constraints
		if len(requests) > 0 {
			rest = append(rest, claim)
		}
	}
	return rest
}

func tolerationOf(taint resourceapi.DeviceTaint) resourceapi.DeviceToleration {
	t := resourceapi.DeviceToleration{Key: taint.Key, Operator: resourceapi.DeviceTolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
	if taint.Value == "" {
		t.Operator = resourceapi.DeviceTolerationOpExists
	}
	return t
}

// dropParts removes parts of selectors, and constraints that were emptied.
func (s *Scenario) dropParts(claims []*resourceapi.ResourceClaim, parts []*fact) {
	for _, p := range parts {
		var conjuncts []int
		for _, other := range parts {
			if other.at == p.at && other.selector == p.selector {
				conjuncts = append(conjuncts, other.conjunct)
			}
		}
		original := (*p.at.in(s.claims).selectors)[p.selector].CEL.Expression
		(*p.at.in(claims).selectors)[p.selector].CEL = &resourceapi.CELDeviceSelector{
			Expression: s.whole.Selectors.Compile(original).Without(conjuncts),
		}
	}
	for _, claim := range claims {
		claim.Spec.Devices.Constraints = slices.DeleteFunc(claim.Spec.Devices.Constraints, func(c resourceapi.DeviceConstraint) bool {
			return c.MatchAttribute == nil && c.DistinctAttribute == nil
		})
	}
}

// withoutParts returns the classes without parts of their selectors.
func (s *Scenario) withoutParts(parts []*fact) []*resourceapi.DeviceClass {
	if len(parts) == 0 {
		return s.snap.Classes
	}
	classes := slices.Clone(s.snap.Classes)
	for i, class := range classes {
		dropped := map[int][]int{}
		for _, p := range parts {
			if p.class == class {
				dropped[p.selector] = append(dropped[p.selector], p.conjunct)
			}
		}
		if len(dropped) == 0 {
			continue
		}
		classes[i] = class.DeepCopy()
		for k, conjuncts := range dropped {
			classes[i].Spec.Selectors[k].CEL.Expression = s.whole.Selectors.Compile(class.Spec.Selectors[k].CEL.Expression).Without(conjuncts)
		}
	}
	return classes
}

// withPools returns the slices with some pools taken for complete, and without the devices
// that keep counter sets from being shared.
func (s *Scenario) withPools(complete map[*cluster.Pool]bool, shared []*fact) []*resourceapi.ResourceSlice {
	if len(complete)+len(shared) == 0 {
		return s.snap.Slices
	}
	changed := map[*resourceapi.ResourceSlice]*resourceapi.ResourceSlice{}
	for pool := range complete {
		for _, slice := range pool.Slices {
			counted := *slice
			counted.Spec.Pool.ResourceSliceCount = int64(len(pool.Slices))
			changed[slice] = &counted
		}
	}
	own := map[*resourceapi.ResourceSlice]bool{}
	devicesOf := func(slice *resourceapi.ResourceSlice) []resourceapi.Device {
		if !own[slice] {
			own[slice], changed[slice] = true, cmp.Or(changed[slice], slice).DeepCopy()
		}
		return changed[slice].Spec.Devices
	}
	for _, f := range shared {
		for _, slice := range f.pool.Slices {
			devices := devicesOf(slice)
			for i := range devices {
				for j := range devices[i].ConsumesCounters {
					consumption := &devices[i].ConsumesCounters[j]
					switch {
					case consumption.CounterSet != f.counterSet:
					case f.kind == factGroups:
						consumption.CompatibilityGroups = nil
					default:
						for name := range consumption.Counters {
							consumption.Counters[name] = resourceapi.Counter{}
						}
					}
				}
			}
		}
	}
	amended := slices.Clone(s.snap.Slices)
	for i, slice := range amended {
		if changed[slice] != nil {
			amended[i] = changed[slice]
		}
	}
	return amended
}

// Holding returns the scenario if only these facts hold, and those that a conflict assumes.
func (s *Scenario) Holding(facts []int) Hypothesis {
	return s.given(func(i int) bool { return slices.Contains(facts, i) || slices.Contains(s.assumed, s.facts[i].kind) })
}

// fits reports whether the claims fit on the node if only the given facts hold.
// Where that cannot be decided, it is an error.
func (s *Scenario) fits(ctx context.Context, holding []int) (bool, error) {
	holds := make([]bool, len(s.facts))
	for _, i := range holding {
		holds[i] = true
	}
	return s.try(ctx, s.given(func(i int) bool { return holds[i] }))
}

// try decides about a hypothesis, by counting where that is possible.
func (s *Scenario) try(ctx context.Context, h Hypothesis) (bool, error) {
	switch {
	case h.Restricted:
		return false, nil
	case len(h.Claims) == 0:
		return true, nil
	}
	amended := s.whole.Cluster.Amended(h.Snap)
	return s.whole.Confirmer.Fits(ctx, s.whole.Question, amended, s.node, h.Claims)
}
