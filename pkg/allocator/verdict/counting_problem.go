// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// ErrNoProblem means that numbers are too large, or an attribute is of a kind
// that the decision procedure does not know. Then only upstream can tell.
var ErrNoProblem = errors.New("cannot be put into numbers")

// ProblemBuilder writes the requirements of claims on one node as a decision problem: the eligible
// devices of each request, the resources they take and the free resources.
type ProblemBuilder struct {
	cluster  *cluster.Cluster
	node     *corev1.Node
	pools    []*cluster.NodePool
	Problem  decision.Problem
	Devices  map[*resourceapi.Device]int
	counters map[string]int
	sets     map[string]int
	values   map[string]int
	err      error
}

// NewProblem makes the problem of a node. There is one funnel for each claim.
func NewProblem(ctx context.Context, facts *cluster.Cluster, node *corev1.Node, pools []*cluster.NodePool, claims []eligibility.Claim) (*ProblemBuilder, error) {
	b := &ProblemBuilder{
		cluster: facts, node: node, pools: pools,
		Problem: decision.Problem{ClaimLimit: resourceapi.AllocationResultsMaxSize},
		Devices: map[*resourceapi.Device]int{}, counters: map[string]int{}, sets: map[string]int{}, values: map[string]int{},
	}
	for i := range claims {
		offset := b.Problem.Constraints
		constraints := cluster.Constraints(claims[i].Claim)
		for _, c := range constraints {
			b.Problem.Distinct = append(b.Problem.Distinct, c.Distinct)
		}
		b.Problem.Constraints += len(constraints)
		for _, alternatives := range claims[i].Funnels {
			r := decision.Request{Claim: i}
			for _, f := range alternatives {
				r.Admin = f.Request.AdminAccess
				r.Alternatives = append(r.Alternatives, b.alternative(ctx, f, node, constraints, offset))
			}
			b.Problem.Requests = append(b.Problem.Requests, r)
		}
	}
	return b, b.err
}

func (b *ProblemBuilder) alternative(ctx context.Context, f *eligibility.Funnel, node *corev1.Node, constraints []cluster.Constraint, offset int) decision.Alternative {
	alternative := decision.Alternative{Count: int(min(f.Request.Count, 1<<20)), All: f.Request.All()}
	for i := range b.pools {
		if reason := eligibility.PoolReason(b.pools[i]); reason != nil {
			// The allocator passes over a pool of which it knows newer slices
			// elsewhere, and gives up at other faults.
			if f.Request.All() && !b.pools[i].Outdated {
				return decision.Alternative{All: true}
			}
			continue
		}
		for j := range b.pools[i].Devices {
			d := &b.pools[i].Devices[j]
			r := f.Checks.Device(ctx, d, node)
			switch {
			case r == nil:
				alternative.Candidates = append(alternative.Candidates, b.candidate(ctx, f, d, constraints, offset))
			case f.Request.All() && r.Matches():
				return decision.Alternative{All: true}
			}
		}
	}
	return alternative
}

func (b *ProblemBuilder) candidate(ctx context.Context, f *eligibility.Funnel, d *cluster.Device, constraints []cluster.Constraint, offset int) decision.Candidate {
	candidate := decision.Candidate{Device: b.device(d)}
	if b.Problem.Devices[candidate.Device].Shared {
		for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
			var request *resource.Quantity
			if f.Request.Capacity != nil {
				if quantity, ok := f.Request.Capacity.Requests[name]; ok {
					request = &quantity
				}
			}
			takes, err := eligibility.ConsumedBy(request, d.Capacity[name], b.cluster.Gates.Enabled("DRAFractionalCapacityRange"))
			if err != nil {
				b.err = err
			}
			candidate.Takes = append(candidate.Takes, b.number(takes))
		}
	}
	for i, c := range constraints {
		if !c.AppliesTo(f.Request) {
			continue
		}
		value, ok, err := f.Checks.Attribute(ctx, d, c.Attribute)
		if err != nil || !ok {
			continue
		}
		if candidate.Values == nil {
			candidate.Values = make([][]int, offset+len(constraints))
		}
		candidate.Values[offset+i] = b.valueSet(value)
	}
	return candidate
}

// device numbers a device when it is first seen.
func (b *ProblemBuilder) device(d *cluster.Device) int {
	if index, ok := b.Devices[d.Device]; ok {
		return index
	}
	out := decision.Device{
		Shared: b.cluster.Gates.Enabled("DRAConsumableCapacity") && d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations,
	}
	used := b.cluster.Usage.Consumed(d.ID)
	if out.Shared {
		for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
			left := d.Capacity[name].Value.DeepCopy()
			left.Sub(used[name])
			out.Capacity = append(out.Capacity, b.number(left))
		}
	}
	if paid := out.Shared && (b.cluster.Usage.Shared(d.ID) || len(used) > 0); !paid {
		b.charge(d, &out)
	}
	b.Problem.Devices = append(b.Problem.Devices, out)
	b.Devices[d.Device] = len(b.Problem.Devices) - 1
	return len(b.Problem.Devices) - 1
}

// charge adds the counters and the compatibility groups of a device.
func (b *ProblemBuilder) charge(d *cluster.Device, out *decision.Device) {
	use := b.cluster.Partitions.Use(d.Pool)
	for _, consumption := range d.ConsumesCounters {
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			key := fmt.Sprintf("%s\x00%s\x00%s\x00%s", d.Pool.Driver, d.Pool.Name, consumption.CounterSet, name)
			counter, ok := b.counters[key]
			if !ok {
				of, _ := use.Counter(consumption.CounterSet, name)
				counter = len(b.Problem.Counters)
				b.counters[key] = counter
				b.Problem.Counters = append(b.Problem.Counters, max(0, b.number(of.Left)))
			}
			out.Uses = append(out.Uses, decision.CounterUse{Counter: counter, Amount: b.number(consumption.Counters[name].Value)})
		}
		if !b.cluster.Gates.Enabled("DRADeviceCompatibilityGroups") {
			continue
		}
		key := fmt.Sprintf("%s\x00%s\x00%s", d.Pool.Driver, d.Pool.Name, consumption.CounterSet)
		set, ok := b.sets[key]
		if !ok {
			set = len(b.Problem.GroupBase)
			b.sets[key] = set
			base := b.cluster.Partitions.GroupsOn(d.Pool, consumption.CounterSet, b.node)
			groups := b.intern(base.Groups.UnsortedList())
			if base.Declared && len(groups) == 0 {
				// Those in use have nothing in common, so that no other can join.
				groups = []int{-1}
			}
			b.Problem.GroupBase = append(b.Problem.GroupBase, decision.GroupBase{Used: base.Used, Groups: groups})
		}
		out.Groups = append(out.Groups, decision.GroupUse{Set: set, Groups: b.intern(consumption.CompatibilityGroups)})
	}
}

func (b *ProblemBuilder) intern(texts []string) []int {
	var numbers []int
	for _, text := range texts {
		number, ok := b.values[text]
		if !ok {
			number = len(b.values)
			b.values[text] = number
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// valueSet returns the values of an attribute that a constraint compares.
func (b *ProblemBuilder) valueSet(a resourceapi.DeviceAttribute) []int {
	if selector.IsList(a) && !b.cluster.Gates.ListsCompared() {
		b.err = ErrNoProblem
		return nil
	}
	texts := eligibility.ValueTexts(a)
	if len(texts) == 0 {
		b.err = ErrNoProblem
	}
	return b.intern(texts)
}

// number returns a quantity in thousandths.
func (b *ProblemBuilder) number(q resource.Quantity) int64 {
	number, ok := eligibility.Thousandths.Of(q)
	if !ok {
		b.err = ErrNoProblem
	}
	return number
}

// stepsPerLook is the work of counting between two looks at its context, in the steps of an
// [allocator.Budget].
const stepsPerLook = 2000

// CountingAnswer decides by counting what upstream decides by trying: whether the claims
// fit on a node. It is Unknown if the numbers are too large, if the release of the
// cluster may decide otherwise, or if ctx is done.
func CountingAnswer(ctx context.Context, q *eligibility.Question, node *corev1.Node) decision.Answer {
	for i := range q.Claims {
		if q.PodClaims[q.Claims[i].Index].ExtendedResources {
			// What is wanted differs from node to node.
			return decision.Unknown
		}
	}
	if differsFromCounting(q, node) {
		return decision.Unknown
	}
	built, err := NewProblem(ctx, q.Cluster, node, q.Reach.Pools[node.Name], q.Claims)
	if err != nil {
		return decision.Unknown
	}
	return decision.Decide(allocator.Counted(ctx, stepsPerLook), &built.Problem).Answer
}

// differsFromCounting reports whether the release of the cluster may decide otherwise than counting.
func differsFromCounting(q *eligibility.Question, node *corev1.Node) bool {
	claims, err := q.ClaimsFor(node)
	return err == nil && allocator.Of(q.Cluster).Differs(node, claims)
}
