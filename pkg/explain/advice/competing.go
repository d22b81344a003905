// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// probeSteps bounds the search for the conflicting requirements on one node: a
// second or two.
const probeSteps = 10_000_000

// notForAll is the message without a closer look.
const notForAll = "enough devices for each request alone, but not for all requests together"

// whyNotAll explains a node where every request has enough devices for itself.
// Each answer is verified: without what it names, the allocator finds devices.
func whyNotAll(ctx context.Context, q *eligibility.Question, confirmer *verdict.Confirmer, node *corev1.Node) Answer {
	claims, err := q.ClaimsFor(node)
	if err != nil {
		return Answer{Verdict: api.Error, Message: err.Error()}
	}
	ctx, budget := allocator.WithBudget(ctx, probeSteps)
	defer budget.End()
	fits := func(facts *cluster.Cluster, claims []*resourceapi.ResourceClaim) bool {
		fits, err := confirmer.Fits(ctx, q, facts, node, claims)
		return fits && err == nil
	}
	answer := Answer{Verdict: api.DoesNotFit, Progress: progressCompeting}

	var constrained, brief []string
	for _, claim := range q.Claims {
		for _, c := range cluster.Constraints(claim.Claim) {
			constrained, brief = append(constrained, c.String()), append(brief, Briefly(q, node, c))
		}
	}
	if len(constrained) > 0 && fits(q.Cluster, withoutConstraints(claims)) {
		answer.Code = api.ConstraintUnsatisfiable
		const enough = "enough devices available, but not with "
		answer.Message, answer.brief = enough+english.JoinAnd(constrained), enough+english.JoinAnd(brief)
		if most := mostOfOne(ctx, q, node); most != nil {
			answer.Missing = most.needs - most.count
			available := q.Claims[0].Funnels[0][0].Eligible[node.Name]
			answer.Message = fmt.Sprintf("%d available, %s", available, most)
			answer.brief = fmt.Sprintf("%d available, %s", available, most.briefly(brief[0]))
		}
		return answer
	}
	if single, titles := singleRequests(q, claims); len(single) > 1 {
		alone := true
		for _, claim := range single {
			alone = alone && fits(q.Cluster, []*resourceapi.ResourceClaim{claim})
		}
		if alone {
			answer.Code = api.RequestsCompete
			answer.Message = fmt.Sprintf("enough devices for each of %s alone, but not for all together", english.JoinAnd(titles))
			return answer
		}
	}
	for _, probe := range []struct {
		code    api.Code
		message string
		change  func(*resourceapi.Device)
	}{
		{api.CompatibilityGroupConflict, "enough devices available, but their compatibility groups differ", func(d *resourceapi.Device) {
			for i := range d.ConsumesCounters {
				d.ConsumesCounters[i].CompatibilityGroups = nil
			}
		}},
		{api.CountersExhausted, "enough devices available, but together they use more than the shared counters have", func(d *resourceapi.Device) { d.ConsumesCounters = nil }},
	} {
		if changed := withDevices(q, node, probe.change); changed != nil && fits(changed, claims) {
			answer.Code, answer.Message = probe.code, probe.message
			return answer
		}
	}
	var panicked *allocator.PanicError
	if errors.As(allocator.Of(q.Cluster).Check(ctx, node, claims).Err, &panicked) {
		return Answer{Verdict: api.Error, Code: api.AllocatorPanic, Message: panicked.Error()}
	}
	answer.Code, answer.Message, answer.Progress = api.CountUnsatisfiable, notForAll, progressUnproved
	if len(q.Claims) == 1 && len(q.Claims[0].Funnels) == 1 {
		answer.Message = "enough devices match, but the allocator cannot allocate so many of them at the same time"
	}
	if budget.Spent() {
		answer.Message += " (the search for the reason was given up)"
	}
	return answer
}

// withDevices returns the cluster with other devices, as far as the allocator may allocate them
// on a node. It is nil if none consumes counters. What the allocator does not use of
// a pool stays as it is: it could be used after the change, which is not what is asked.
func withDevices(q *eligibility.Question, node *corev1.Node, change func(*resourceapi.Device)) *cluster.Cluster {
	changed := false
	amended := *q.Cluster.Snapshot
	amended.Slices = nil
	seen := map[*cluster.Pool]bool{}
	for _, pool := range q.Reach.Pools[node.Name] {
		if seen[pool.Pool] {
			continue
		}
		seen[pool.Pool] = true
		for _, published := range pool.Pool.Slices {
			slice := published.DeepCopy()
			used := pool.Usable() && slices.Contains(pool.Slices, published)
			for i := range slice.Spec.Devices {
				if used && len(slice.Spec.Devices[i].ConsumesCounters) > 0 {
					changed = true
					change(&slice.Spec.Devices[i])
				}
			}
			amended.Slices = append(amended.Slices, slice)
		}
	}
	if !changed {
		return nil
	}
	// The taint rules are in the slices already.
	amended.TaintRules = nil
	return q.Cluster.Amended(&amended)
}

func withoutConstraints(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	loose := make([]*resourceapi.ResourceClaim, 0, len(claims))
	for _, claim := range claims {
		claim = claim.DeepCopy()
		claim.Spec.Devices.Constraints = nil
		loose = append(loose, claim)
	}
	return loose
}

// singleRequests splits claims into one claim for each request, and says what
// each is called.
func singleRequests(q *eligibility.Question, claims []*resourceapi.ResourceClaim) (single []*resourceapi.ResourceClaim, titles []string) {
	for c, claim := range claims {
		for i, r := range claim.Spec.Devices.Requests {
			one := claim.DeepCopy()
			one.Spec.Devices.Requests = one.Spec.Devices.Requests[i : i+1]
			one.Spec.Devices.Constraints = slices.DeleteFunc(one.Spec.Devices.Constraints, func(c resourceapi.DeviceConstraint) bool {
				if len(c.Requests) == 0 {
					return false
				}
				return !slices.ContainsFunc(c.Requests, func(name string) bool {
					base, _, _ := strings.Cut(name, "/")
					return base == r.Name
				})
			})
			single = append(single, one)
			titles = append(titles, eligibility.RequestTitle(q, c, r.Name))
		}
	}
	return single, titles
}

// mostAnswer limits how far the devices of a node get with the only constraint: how many of them
// agree in its attribute, or how many different values there are.
type mostAnswer struct {
	distinct     bool
	needs, count int
	constraint   cluster.Constraint
}

func (m *mostAnswer) String() string {
	if m.distinct {
		return fmt.Sprintf("but %s of %s", eligibility.DistinctValues(m.count), m.constraint.Attribute)
	}
	return m.briefly(m.constraint.String())
}

// briefly returns the text with the constraint in other words.
func (m *mostAnswer) briefly(constraint string) string {
	if m.distinct {
		return m.String()
	}
	return fmt.Sprintf("at most %d with %s", m.count, constraint)
}

// Briefly returns a constraint without the domain of its attribute, where no device of the
// node has another attribute of that name.
func Briefly(q *eligibility.Question, node *corev1.Node, c cluster.Constraint) string {
	domain, name, _ := strings.Cut(string(c.Attribute), "/")
	for _, pool := range q.Reach.Pools[node.Name] {
		for i := range pool.Devices {
			for other := range pool.Devices[i].Attributes {
				of, last, qualified := strings.Cut(string(other), "/")
				if !qualified {
					of, last = pool.Pool.Driver, string(other)
				}
				if last == name && of != domain {
					return c.String()
				}
			}
		}
	}
	return c.Briefly()
}

// mostOfOne returns nil where several requests or a list attribute make it hard to say, and
// where another condition blocks the node, too.
func mostOfOne(ctx context.Context, q *eligibility.Question, node *corev1.Node) *mostAnswer {
	if len(q.Claims) != 1 || len(q.Claims[0].Funnels) != 1 || len(q.Claims[0].Funnels[0]) != 1 {
		return nil
	}
	f := q.Claims[0].Funnels[0][0]
	if len(f.Request.Constraints) != 1 || f.Request.All() {
		return nil
	}
	constraint := f.Request.Constraints[0]
	values := english.Tally{}
	for _, pool := range q.Reach.Pools[node.Name] {
		for i := range pool.Devices {
			d := &pool.Devices[i]
			if f.Checks.Device(ctx, d, node) != nil {
				continue
			}
			value, ok, err := f.Checks.Attribute(ctx, d, constraint.Attribute)
			if err != nil || !ok || selector.IsList(value) {
				return nil
			}
			values[selector.Literal(value)]++
		}
	}
	if len(values) == 0 {
		return nil
	}
	m := &mostAnswer{constraint: constraint, distinct: constraint.Distinct, needs: int(min(f.Request.Count, math.MaxInt32)), count: len(values)}
	if !m.distinct {
		m.count = values[values.Sorted()[0]]
	}
	if m.count >= m.needs {
		return nil
	}
	return m
}
