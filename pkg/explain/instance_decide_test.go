// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// solve returns the decision for the only node of an instance.
func (x *builder) solve(tb testing.TB) (*verdict.ProblemBuilder, decision.Result) {
	tb.Helper()
	node := x.Reach.Candidates[0]
	built, err := verdict.NewProblem(tb.Context(), x.Cluster, node, x.Reach.Pools[node.Name], x.Claims)
	if err != nil {
		tb.Fatal(err)
	}
	return built, decision.Decide(tb.Context(), &built.Problem)
}

// TestInstances decides what the allocator cannot: short by counting, enough
// with an assignment that the allocator takes.
func TestInstances(t *testing.T) {
	list := instances()
	if len(list) < 30 {
		t.Errorf("only %d instances", len(list))
	}
	for _, i := range list {
		t.Run(i.name, func(t *testing.T) {
			if _, short := surveyed(t, tc.Cluster(i.short...)).solve(t); short.Answer != decision.Infeasible {
				t.Errorf("one short is %s", short.Answer)
			}
			x := surveyed(t, tc.Cluster(i.enough...))
			built, enough := x.solve(t)
			if enough.Answer != decision.Feasible {
				t.Fatalf("enough is %s", enough.Answer)
			}
			verdict := allocator.Of(x.Cluster).Check(t.Context(), x.Reach.Candidates[0], x.pinned(built, enough.Chosen))
			if verdict.Outcome != allocator.Fits {
				t.Errorf("the allocator says %s (%v) to %v", verdict.Outcome, verdict.Err, enough.Chosen)
			}
		})
	}
}

// pinned returns the claims, asking for just the devices that were chosen.
func (x *builder) pinned(built *verdict.ProblemBuilder, chosen []decision.Choice) []*resourceapi.ResourceClaim {
	ids := make([]string, len(built.Devices))
	for d, i := range built.Devices {
		ids[i] = fmt.Sprint(*d.Attributes["id"].IntValue)
	}
	claims := make([]*resourceapi.ResourceClaim, 0, len(x.Claims))
	next := 0
	for _, c := range x.Claims {
		claim := c.Claim.DeepCopy()
		for i := range claim.Spec.Devices.Requests {
			r, choice := &claim.Spec.Devices.Requests[i], chosen[next]
			next++
			var texts []string
			for _, d := range choice.Devices {
				texts = append(texts, ids[d])
			}
			pin := tc.CELSelectors(fmt.Sprintf(`device.attributes[%q].id in [%s]`, tc.Driver, strings.Join(texts, ", ")))
			if r.Exactly != nil {
				r.Exactly.Selectors = slices.Concat(pin, r.Exactly.Selectors)
				continue
			}
			r.FirstAvailable = slices.Clone(r.FirstAvailable[choice.Alternative : choice.Alternative+1])
			r.FirstAvailable[0].Selectors = slices.Concat(pin, r.FirstAvailable[0].Selectors)
		}
		claims = append(claims, claim)
	}
	return claims
}

// BenchmarkHard reports for each instance that is one short
//
//	decide-ms    how long it takes to decide that nothing fits
//	conflict-ms  how long it takes to find what cannot hold together
//	explain-ms   how long the whole explanation takes, outlook, conflict and
//	             remedies included
//	facts        how many facts the conflict has, 0 if none was found
//
// With UPSTREAM set to a duration it also asks the allocator once, and reports
// how many seconds it takes (upstream-s), at most that long.
func BenchmarkHard(b *testing.B) {
	for _, i := range instances() {
		b.Run(strings.ReplaceAll(i.name, " ", "_"), func(b *testing.B) {
			var decide, conflict, explain time.Duration
			facts := 0
			for b.Loop() {
				x := surveyed(b, tc.Cluster(i.short...))
				start := time.Now()
				if _, result := x.solve(b); result.Answer != decision.Infeasible {
					b.Fatal(result.Answer)
				}
				decide += time.Since(start)

				start = time.Now()
				s, err := x.conflictCase().Scenario(x.Reach.Candidates[0])
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Conflict(b.Context()); err != nil {
					b.Fatal(err)
				}
				conflict += time.Since(start)

				start = time.Now()
				e, err := Explain(b.Context(), tc.Cluster(i.short...), Options{Object: api.Ref(api.KindPod, tc.Namespace, waiting)})
				if err != nil {
					b.Fatal(err)
				}
				explain += time.Since(start)
				if e.Verdict != api.DoesNotFit {
					b.Fatalf("%s: %s", e.Verdict, e.Summary)
				}
				if facts = 0; e.Conflict != nil {
					facts = len(e.Conflict.Facts)
				}
			}
			b.ReportMetric(decide.Seconds()*1000/float64(b.N), "decide-ms")
			if limit, err := time.ParseDuration(os.Getenv("UPSTREAM")); err == nil {
				b.ReportMetric(askUpstream(b, i.short, limit).Seconds(), "upstream-s")
			}
			b.ReportMetric(conflict.Seconds()*1000/float64(b.N), "conflict-ms")
			b.ReportMetric(explain.Seconds()*1000/float64(b.N), "explain-ms")
			b.ReportMetric(float64(facts), "facts")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// askUpstream returns how long the allocator takes to find nothing.
func askUpstream(b *testing.B, parts []any, limit time.Duration) time.Duration {
	b.Helper()
	x := surveyed(b, tc.Cluster(parts...))
	c := allocator.Reopen(x.Cluster, allocator.WithTimeout(limit))
	claims, err := x.ClaimsFor(x.Reach.Candidates[0])
	if err != nil {
		b.Fatal(err)
	}
	return allocator.Of(c).Check(b.Context(), x.Reach.Candidates[0], claims).Duration
}
