// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// SearchSteps is how many steps the allocator's search may take for a what-if
// cluster where counting does not know the answer: about a tenth of a second.
const SearchSteps = 1_000_000

// confirmSteps is how many it may take where counting says that the claims fit:
// half of it the first time that it finds nothing, and half as many each time.
const confirmSteps = 400_000

// Confirmer asks about what-if clusters, and gives the allocator the fewer steps
// the more often they were not enough.
type Confirmer struct {
	// unconfirmed is how often the allocator did not end, though counting says
	// that claims fit.
	unconfirmed int
}

// Fits reports whether claims fit on a node of a what-if cluster. Counting may
// say that they do not; that they do is for the allocator to say, which may also
// fail, unless it takes too many steps. Where neither knows, it is an error.
func (c *Confirmer) Fits(ctx context.Context, q *eligibility.Question, facts *cluster.Cluster, node *corev1.Node, claims []*resourceapi.ResourceClaim) (bool, error) {
	steps := int64(SearchSteps)
	counted, known := FitsByCounting(ctx, q, facts, node, claims)
	if known {
		if !counted {
			return false, nil
		}
		steps = (confirmSteps / 2) >> c.unconfirmed
	}
	limited, budget := allocator.WithBudget(ctx, steps)
	defer budget.End()
	switch verdict := allocator.Of(facts).Check(limited, node, claims); verdict.Outcome {
	case allocator.Fits:
		return true, nil
	case allocator.DoesNotFit, allocator.NodeError, allocator.Failed:
		return false, nil
	default:
		if known && ctx.Err() == nil {
			c.unconfirmed++
			return true, nil
		}
		return false, fmt.Errorf("check node %s: %w", node.Name, verdict.Err)
	}
}

// CheckUnless asks the allocator about those nodes that are not hard. The claims
// do not fit on the others, whose indices it returns.
func CheckUnless(ctx context.Context, q *eligibility.Question, nodes []*corev1.Node, isHard func(context.Context, *corev1.Node) bool) (verdicts []allocator.NodeVerdict, hard []int) {
	verdicts = make([]allocator.NodeVerdict, len(nodes))
	var easy []int
	var asked []*corev1.Node
	for i, node := range nodes {
		if isHard(ctx, node) {
			verdicts[i] = allocator.NodeVerdict{Outcome: allocator.DoesNotFit}
			hard = append(hard, i)
			continue
		}
		easy, asked = append(easy, i), append(asked, node)
	}
	for at, verdict := range allocator.Of(q.Cluster).CheckAll(ctx, asked, func(node *corev1.Node) ([]*resourceapi.ResourceClaim, error) { return q.ClaimsFor(node) }) {
		verdicts[easy[at]] = verdict
	}
	return verdicts, hard
}

// FitsByCounting says by counting whether claims fit on a node of a
// what-if cluster. It is not known where numbers are too large, or where
// a selector fails, of which counting knows nothing.
func FitsByCounting(ctx context.Context, q *eligibility.Question, c *cluster.Cluster, node *corev1.Node, claims []*resourceapi.ResourceClaim) (fits, known bool) {
	one, err := QuestionOnNode(ctx, q, c, node, claims)
	if err != nil {
		return false, false
	}
	switch CountingAnswer(ctx, one, node) {
	case decision.Feasible:
		return true, !MayFail(ctx, one, node)
	case decision.Infeasible:
		return false, true
	default:
		return false, false
	}
}

// QuestionOnNode returns the question about claims on one node of a what-if cluster.
func QuestionOnNode(ctx context.Context, q *eligibility.Question, c *cluster.Cluster, node *corev1.Node, claims []*resourceapi.ResourceClaim) (*eligibility.Question, error) {
	one := eligibility.NewQuestion(c, q.Pod, make([]cluster.PodClaim, 0, len(claims)))
	if one.Selectors.Like(q.Selectors) {
		one.Selectors, one.Catalog = q.Selectors, q.Catalog
	}
	for i, claim := range claims {
		one.PodClaims = append(one.PodClaims, cluster.PodClaim{Claim: claim})
		if claim.Status.Allocation == nil {
			one.Claims = append(one.Claims, eligibility.Claim{Claim: claim, Index: i})
		}
	}
	pools, err := c.Pools.For(node)
	if err != nil {
		return nil, fmt.Errorf("find the pools of node %s: %w", node.Name, err)
	}
	one.Reach.Candidates = []*corev1.Node{node}
	one.Reach.Pools = map[string][]*cluster.NodePool{node.Name: pools}
	for i := range one.Claims {
		if err := one.AddFunnels(ctx, &one.Claims[i], node); err != nil {
			return nil, err
		}
	}
	return one, nil
}

// The allocator tries all combinations, and their number can be beyond all
// measure: 25 devices of 24 take minutes. Where it may be so and counting
// proves that nothing fits, it is not waited for.
const (
	// longSearch is the number of combinations, as a power of two, from which
	// on a node is decided by counting first.
	longSearch = 17
	// countingSteps bounds the counting for one node: a second or two.
	countingSteps = 10_000_000
)

// IsHard reports whether the allocator may search a node for long and find nothing.
func IsHard(ctx context.Context, q *eligibility.Question, node *corev1.Node) bool {
	if combinations(q, node.Name) < longSearch {
		return false
	}
	ctx, budget := allocator.WithBudget(ctx, countingSteps)
	defer budget.End()
	return CountingAnswer(ctx, q, node) == decision.Infeasible && !MayFail(ctx, q, node)
}

// TooFewDevices reports whether a node has fewer devices for some request than it asks for, each of
// which can be allocated once. It is false where the allocator might end with an error, or
// would take long to find out.
func TooFewDevices(ctx context.Context, q *eligibility.Question, node *corev1.Node) bool {
	pools, readable := q.Reach.Pools[node.Name]
	if !readable || slices.ContainsFunc(pools, mayEndOtherwise) || differsFromCounting(q, node) {
		return false
	}
	short := false
	for _, claim := range q.Claims {
		if q.PodClaims[claim.Index].ExtendedResources {
			return false
		}
		for _, alternatives := range claim.Funnels {
			// What is wrong with a pool, and too many devices, is an error for these.
			if slices.ContainsFunc(alternatives, func(f *eligibility.Funnel) bool { return f.Request.All() }) {
				return false
			}
			short = short || !slices.ContainsFunc(alternatives, func(f *eligibility.Funnel) bool {
				return f.Request.AdminAccess || int64(f.Eligible[node.Name]) >= f.Request.Count
			})
		}
	}
	return short && combinations(q, node.Name) < longSearch && !MayFail(ctx, q, node)
}

// mayEndOtherwise reports whether the allocator may end with an error where it finds nothing in
// a pool, or may allocate a device of it more than once.
func mayEndOtherwise(pool *cluster.NodePool) bool {
	return pool.Invalid != "" || slices.ContainsFunc(pool.Devices, func(d cluster.Device) bool { return ptr.Deref(d.AllowMultipleAllocations, false) })
}

// IsHardAlone reports whether the node is hard, like [IsHard], where nothing is accounted
// for yet. Most nodes do not even have enough devices to be worth it.
func IsHardAlone(ctx context.Context, q *eligibility.Question, node *corev1.Node) bool {
	devices := 0
	for _, pool := range q.Reach.Pools[node.Name] {
		devices += len(pool.Devices)
	}
	claims, err := q.ClaimsFor(node)
	if err != nil || mostCombinations(claims, devices) < longSearch {
		return false
	}
	one, err := QuestionOnNode(ctx, q, q.Cluster, node, claims)
	return err == nil && IsHard(ctx, one, node)
}

// combinations estimates, as a power of two, how many sets of devices the
// allocator tries on a node before it gives up.
func combinations(q *eligibility.Question, node string) float64 {
	bits := 0.0
	for _, claim := range q.Claims {
		for _, alternatives := range claim.Funnels {
			most := 0.0
			for _, f := range alternatives {
				if f.Request.All() {
					continue
				}
				most = max(most, combinationsOf(f.Eligible[node], f.Request.Count))
			}
			bits += most
		}
	}
	return bits
}

// mostCombinations returns the most that combinations can be where a node has so many
// devices.
func mostCombinations(claims []*resourceapi.ResourceClaim, devices int) float64 {
	bits := 0.0
	for _, claim := range claims {
		for _, alternatives := range cluster.Requests(claim) {
			most := 0.0
			for _, r := range alternatives {
				if !r.All() {
					most = max(most, combinationsOf(devices, r.Count))
				}
			}
			bits += most
		}
	}
	return bits
}

// combinationsOf returns the binary logarithm of the number of sets of at most k of n:
// smaller sets are tried on the way to a set of k.
func combinationsOf(n int, k int64) float64 {
	sets, ofSize := 1.0, 1.0
	for size := 1; size <= n && int64(size) <= k && !math.IsInf(sets, 1); size++ {
		ofSize *= float64(n-size+1) / float64(size)
		sets += ofSize
	}
	return math.Log2(sets)
}

// MayFail reports whether a selector fails on a device of a node, which ends the
// attempt for all nodes if the allocator gets to see it.
func MayFail(ctx context.Context, q *eligibility.Question, node *corev1.Node) bool {
	return slices.ContainsFunc(q.Reach.Pools[node.Name], func(pool *cluster.NodePool) bool { return q.SelectorFails(ctx, pool, node) })
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
			// The allocator passes over a pool with newer slices elsewhere, and
			// gives up at other faults.
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
