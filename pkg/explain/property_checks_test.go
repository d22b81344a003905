// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Names of the counted checks, for the table.
const (
	checkInfeasible = "counting: does not fit"
	checkFeasible   = "counting: fits"
	checkUnknown    = "counting: unknown"
	checkConflict   = "conflicts"
	checkRemedy     = "remedies"
)

// plainAnswer is the scheduler's answer.
type plainAnswer struct {
	verdict api.Verdict
	// outcomes has the nodes where the allocator was asked.
	outcomes map[string]allocator.Outcome
	// random is set if the answer may differ from time to time: the stable
	// implementation goes through pools in random order, so that which error it
	// meets, and whether, is chance.
	random bool
}

// unsuitable stands for nodes that the pod can't use anyway.
const unsuitable allocator.Outcome = "unsuitable"

// askPlainly does what the scheduler does: one node after the other, nothing
// remembered. Where a search is given up, the answer is worth nothing.
func askPlainly(ctx context.Context, t *testing.T, c *fleet.Case) plainAnswer {
	t.Helper()
	pod := c.Pod()
	answer := plainAnswer{outcomes: map[string]allocator.Outcome{}}
	facts := cluster.New(c.Snapshot)
	if notEvenTried(c, facts) {
		answer.verdict = api.Error
		if slices.ContainsFunc(c.Claims(), func(claim *resourceapi.ResourceClaim) bool { return claim.DeletionTimestamp != nil }) {
			answer.verdict = api.Blocked
		}
		answer.outcomes["any"] = allocator.Failed
		return answer
	}
	answer.verdict = api.DoesNotFit
	for _, node := range c.Snapshot.Nodes {
		answer.outcomes[node.Name] = unsuitable
		if !suitable(c, facts, node) {
			continue
		}
		claims := c.Claims()
		extended, err := facts.Claims.ExtendedResourceClaim(pod, node)
		if err != nil {
			continue
		}
		if extended != nil {
			claims = append(claims, extended)
		}
		outcome := allocator.Of(facts).Check(ctx, node, claims).Outcome
		answer.outcomes[node.Name] = outcome
		switch outcome {
		case allocator.Fits:
			answer.verdict = api.Fits
		case allocator.Failed:
			answer.verdict = api.Error
			answer.random = facts.Gates.Features().Channel == "stable"
			return answer
		case allocator.DoesNotFit, allocator.NodeError, allocator.GivenUp:
		default:
			t.Errorf("seed %d, node %s: %s, the case is too large", c.Seed, node.Name, outcome)
		}
	}
	if facts.Gates.Features().Channel == "stable" && slices.Contains(c.Features, fleet.FailingSelectors) {
		answer.random = true
	}
	return answer
}

// notEvenTried reports whether a claim stops the pod before any node is looked at.
func notEvenTried(c *fleet.Case, facts *cluster.Cluster) bool {
	for _, claim := range c.Claims() {
		if claim.DeletionTimestamp != nil {
			return true
		}
		for _, r := range claim.Spec.Devices.Requests {
			switch {
			case r.Exactly == nil && !facts.Gates.Enabled("DRAPrioritizedList"):
				return true
			case r.Exactly != nil && c.Snapshot.Class(r.Exactly.DeviceClassName) == nil:
				return true
			case r.Exactly != nil && r.Exactly.AdminAccess != nil && claim.UID == "" && c.Snapshot.Namespaces[0].Labels == nil:
				// The API server does not take such a claim.
				return true
			}
		}
	}
	return false
}

func suitable(c *fleet.Case, facts *cluster.Cluster, node *corev1.Node) bool {
	if len(facts.Nodes.Fit(c.Pod(), node)) > 0 {
		return false
	}
	for _, claim := range c.Snapshot.Claims {
		if claim.Namespace == fleet.Namespace && claim.Status.Allocation != nil {
			if ok, _ := facts.Claims.AvailableOn(claim, node); !ok {
				return false
			}
		}
	}
	return true
}

// property has a case, its explanation, and the allocator's answer.
type property struct {
	*fleet.Case
	*builder

	// ctx has the budget of the case.
	ctx  context.Context
	t    *testing.T
	want plainAnswer
}

func (p *property) sameVerdict() error {
	if p.out.Verdict != p.want.verdict {
		return fmt.Errorf("verdict %s (%s), the allocator says %s %v", p.out.Verdict, p.out.Summary, p.want.verdict, p.want.outcomes)
	}
	return nil
}

// nodesInGroups checks that each node is in the one group with its answer.
func (p *property) nodesInGroups() error {
	seen := map[string]bool{}
	for _, group := range p.out.Nodes {
		if group.Count != len(group.Names) || group.Verdict != api.Fits && group.Message == "" {
			return fmt.Errorf("incomplete group %+v", group)
		}
		for _, name := range group.Names {
			if seen[name] {
				return fmt.Errorf("node %s is in two groups", name)
			}
			seen[name] = true
			outcome := p.want.outcomes[name]
			if outcome == "" {
				// The attempt ended before.
				continue
			}
			if (group.Verdict == api.Fits) != (outcome == allocator.Fits) {
				return fmt.Errorf("node %s is in group %s (%s), the allocator says %s", name, group.Verdict, group.Message, outcome)
			}
		}
	}
	if len(seen) != len(p.Snapshot.Nodes) || p.out.NodeCount != len(seen) {
		return fmt.Errorf("%d nodes in groups, %d counted, want %d", len(seen), p.out.NodeCount, len(p.Snapshot.Nodes))
	}
	return nil
}

// headlineCounts checks that the summary says of its node what the node's group says: how
// many devices are available there.
func (p *property) headlineCounts(table *coverage) error {
	said := regexp.MustCompile(`Node (\S+)(?: and \d+ more nodes?)? (?:has|have) (\d+) (?:of \d+ )?available`).FindStringSubmatch(p.out.Summary)
	if said == nil || strings.Contains(p.out.Summary, "not suitable") {
		// Of such a node, the group says why it is not.
		return nil
	}
	at := slices.IndexFunc(p.out.Nodes, func(g api.NodeGroup) bool { return slices.Contains(g.Names, said[1]) })
	if at < 0 {
		return fmt.Errorf("the node of the summary is in no group: %s", p.out.Summary)
	}
	group := p.out.Nodes[at]
	for _, part := range group.Parts {
		if slices.Contains(part.Names, said[1]) {
			group = part
		}
	}
	if !regexp.MustCompile(`(^|: )` + said[2] + ` (of \d+ )?available`).MatchString(group.Message) {
		return fmt.Errorf("the summary says %q, the node's group %q", p.out.Summary, group.Message)
	}
	table.checked("headline as its node")
	return nil
}

// funnelsAddUp checks that each device of each funnel counts once.
func (p *property) funnelsAddUp() error {
	total := 0
	for _, s := range p.Snapshot.Slices {
		total += len(s.Spec.Devices)
	}
	for _, claim := range p.out.Claims {
		for _, r := range claim.Requests {
			sum := r.Eligible
			devices := slices.Clone(r.EligibleDevices)
			for _, rejection := range r.Rejected {
				sum += rejection.Count
				devices = append(devices, rejection.Devices...)
				if rejection.Count != len(rejection.Devices) || rejection.Message == "" || rejection.Label == "" {
					return fmt.Errorf("request %s: incomplete rejection %+v", r.Name, rejection)
				}
			}
			if sum != r.Considered || r.Considered != total || len(devices) != total || len(r.EligibleDevices) != r.Eligible {
				return fmt.Errorf("request %s: %d devices, %d considered, %d accounted for, %d named", r.Name, total, r.Considered, sum, len(devices))
			}
		}
	}
	return nil
}

// singleDevices asks the allocator about each device alone: it can be had for
// a request on some node exactly if the funnel leaves it.
func (p *property) singleDevices() error {
	for _, claim := range p.Question.Claims {
		for _, alternatives := range claim.Funnels {
			for _, f := range alternatives {
				if f.Request.All() || f.Checks.ExtendedResource != "" {
					continue
				}
				explained := f.Explanation(0)
				for i := range f.Devices {
					d := &f.Devices[i]
					if slices.ContainsFunc(f.Devices, func(other cluster.Device) bool { return other.ID == d.ID && other.Device != d.Device }) {
						// The names of both would be the same.
						continue
					}
					want, known := p.canBeHad(f.Request, d)
					if got := slices.Contains(explained.EligibleDevices, d.ID.String()); known && got != want {
						return fmt.Errorf("request %s, device %s: eligible is %t, the allocator says %t (%+v)", f.Request.Name, d.ID, got, want, f.Reason(d))
					}
				}
			}
		}
	}
	return nil
}

// canBeHad asks for one device by its attribute "id". It is not known if the
// allocator refuses the request for all devices, because of a feature gate.
func (p *property) canBeHad(r *cluster.Request, d *cluster.Device) (answer, known bool) {
	pin := fmt.Sprintf(`device.driver == %q && device.attributes[%q].id == %d`, d.ID.Driver, d.ID.Driver, *d.Attributes["id"].IntValue)
	exact := &resourceapi.ExactDeviceRequest{
		DeviceClassName: r.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		Selectors: slices.Concat(tc.CELSelectors(pin), r.Selectors), Tolerations: r.Tolerations, Capacity: r.Capacity, DerivedAttributes: r.Derived,
	}
	if r.AdminAccess {
		exact.AdminAccess = &r.AdminAccess
	}
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Claim.Namespace, Name: "single", UID: "uid-single"},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: exact}}}},
	}
	for _, c := range r.Constraints {
		constraint := resourceapi.DeviceConstraint{MatchAttribute: &c.Attribute}
		if c.Distinct {
			constraint = resourceapi.DeviceConstraint{DistinctAttribute: &c.Attribute}
		}
		claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, constraint)
	}
	for _, node := range p.Reach.Candidates {
		checked := allocator.Of(p.Cluster).Check(p.ctx, node, []*resourceapi.ResourceClaim{claim})
		switch {
		case checked.Outcome == allocator.Fits:
			return true, true
		case checked.Outcome == allocator.Failed && verdict.ErrorCode(checked.Err) == api.FeatureDisabled:
			return false, false
		}
	}
	return false, true
}

// placementFromFunnel checks that what the allocator picks was not rejected.
func (p *property) placementFromFunnel() error {
	if p.out.Placement == nil {
		return nil
	}
	for _, placed := range p.out.Placement.Claims {
		for _, claim := range p.out.Claims {
			if claim.Name != placed.Name || claim.ExtendedResources {
				continue
			}
			for _, d := range placed.Devices {
				id := cluster.DeviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Device}.String()
				if !slices.ContainsFunc(claim.Requests, func(r api.RequestExplanation) bool {
					return r.Name == d.Request && slices.Contains(r.EligibleDevices, id)
				}) {
					return fmt.Errorf("the allocator picks %s for request %s, which the funnel rejects", id, d.Request)
				}
			}
		}
	}
	return nil
}

// decision holds the counting against the allocator, for each node.
func (p *property) decision(table *coverage) error {
	for _, node := range p.Reach.Candidates {
		if len(p.Question.Claims) == 0 || len(p.Question.Claims[0].Funnels) == 0 {
			// Refused before there were funnels.
			return nil
		}
		answer := verdict.CountingAnswer(p.ctx, p.Question, node)
		switch outcome := p.want.outcomes[node.Name]; {
		case answer == decision.Infeasible && outcome == allocator.Fits:
			return fmt.Errorf("node %s: it fits, by counting it does not", node.Name)
		case answer == decision.Feasible && outcome == allocator.DoesNotFit:
			return fmt.Errorf("node %s: it does not fit, by counting it does", node.Name)
		case outcome != allocator.Fits && outcome != allocator.DoesNotFit:
		default:
			table.checked(map[decision.Answer]string{decision.Feasible: checkFeasible, decision.Infeasible: checkInfeasible, decision.Unknown: checkUnknown}[answer])
		}
	}
	return nil
}

// conflictIsMinimal checks that the facts cannot hold together, and can
// without any one of them.
func (p *property) conflictIsMinimal(table *coverage) error {
	if p.out.Conflict == nil {
		return nil
	}
	table.checked(checkConflict)
	ctx := p.ctx
	node := p.Cluster.Snapshot.Node(p.out.Conflict.Node)
	s, err := p.conflictCase().Scenario(node)
	if err != nil {
		return err
	}
	chosen, err := s.Conflict(ctx)
	if err != nil {
		return err
	}
	fits := func(holding []int) bool {
		h := s.Holding(holding)
		c := cluster.New(h.Snap)
		return !h.Restricted && (len(h.Claims) == 0 || allocator.Of(c).Check(ctx, node, h.Claims).Outcome == allocator.Fits)
	}
	if fits(chosen) {
		return fmt.Errorf("the facts can hold together: %s", asJSON(p.out.Conflict))
	}
	for i := range chosen {
		if rest := slices.Delete(slices.Clone(chosen), i, i+1); !fits(rest) {
			return fmt.Errorf("without %q it does not fit either: %s", p.out.Conflict.Facts[i].Text, asJSON(p.out.Conflict))
		}
	}
	return nil
}

// remediesHold checks that each remedy names devices that are there, and one
// for every device that is asked for at least.
func (p *property) remediesHold(table *coverage) error {
	for _, r := range p.out.Remedies {
		table.checked(checkRemedy)
		if p.want.verdict == api.Fits || r.Node == "" || len(r.Devices) == 0 || r.Change == "" {
			return fmt.Errorf("remedy without proof: %s", asJSON(r))
		}
		for _, d := range r.Devices {
			id := cluster.DeviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Device}
			if p.Cluster.Pools.Device(id) == nil {
				return fmt.Errorf("remedy with the unknown device %s: %s", id, asJSON(r))
			}
		}
		if err := p.editsHold(&r); err != nil {
			return fmt.Errorf("remedy %q: %w", r.Change, err)
		}
	}
	return nil
}

// editsHold makes the edits of a remedy and asks the allocator plainly.
func (p *property) editsHold(r *api.Remedy) error {
	again := askPlainly(p.ctx, p.t, &fleet.Case{Seed: p.Seed, Features: p.Features, Snapshot: applied(p.t, p.Snapshot, r)})
	fitting := 0
	for _, outcome := range again.outcomes {
		if outcome == allocator.Fits {
			fitting++
		}
	}
	if again.verdict != api.Fits || again.outcomes[r.Node] != allocator.Fits || fitting != r.Nodes {
		return fmt.Errorf("with the edits made, the allocator says %s and finds devices on %d nodes: %s", again.verdict, fitting, asJSON(r))
	}
	return nil
}
