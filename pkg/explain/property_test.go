// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestProperties holds explanations of random clusters against the allocator,
// asked in a plain loop: the verdict, every node's group, the funnels, the
// decision by counting, the conflict and the remedies. Each question is asked
// twice, and has one answer.
//
// It takes the first 2,000 seeds, so that it always does the same. With
// CASES=n it takes n others, from SEED on if that is set; what it prints is
// enough to try one again. Searches that take too many steps are given up, and so
// is the case: that must be rare.
func TestProperties(t *testing.T) {
	first, count, fresh := uint64(0), uint64(2000), false
	if text := os.Getenv("CASES"); text != "" {
		fresh = true
		first, count = rand.Uint64N(1<<40), number(t, text)
	}
	if text := os.Getenv("SEED"); text != "" {
		first = number(t, text)
	}
	if testing.Short() {
		count = min(count, 200)
	}
	t.Logf("seeds %d to %d; one alone: CASES=1 SEED=%d go test ./pkg/explain -run TestProperties -v", first, first+count-1, first)

	table := newCoverage()
	var next, failures atomic.Uint64
	var givenUp seeds
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for failures.Load() < 5 {
				at := next.Add(1) - 1
				if at >= count {
					return
				}
				if at > 0 && at%1000 == 0 {
					t.Logf("%d of %d cases", at, count)
				}
				c := fleet.Random(first + at)
				// The clock stands still, so that the scheduler's limit of time cuts no search
				// short on a busy machine.
				synctest.Test(t, func(t *testing.T) {
					ctx, budget := allocator.WithBudget(t.Context(), caseSteps)
					defer budget.End()
					switch err := checkProperties(ctx, t, c, table); {
					case budget.Spent():
						givenUp.add(c.Seed)
					case err != nil:
						failures.Add(1)
						t.Errorf("seed %d: %v\nfeatures: %s", c.Seed, err, strings.Join(c.Features, ", "))
					}
				})
			}
		})
	}
	workers.Wait()
	t.Logf("given up after %d steps: %d of %d cases, seeds %v", caseSteps, len(givenUp.list), count, givenUp.list)
	if limit := max(1, count/100); uint64(len(givenUp.list)) > limit {
		t.Errorf("%d of %d cases were given up, want at most %d", len(givenUp.list), count, limit)
	}
	t.Logf("\n%s", table)
	// A few cases cover nothing for sure.
	if !fresh && !testing.Short() {
		for _, gap := range table.gaps() {
			t.Errorf("%s", gap)
		}
	}
}

// caseSteps bounds the searches for one case, upstream's and the explanation's together:
// some seconds. Most cases take less than a thousandth of it.
const caseSteps = 20_000_000

// seeds are the seeds of cases that several workers find.
type seeds struct {
	mutex sync.Mutex
	list  []uint64
}

func (s *seeds) add(seed uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.list = append(s.list, seed)
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkProperties makes all checks of one case.
func checkProperties(ctx context.Context, t *testing.T, c *fleet.Case, table *coverage) error {
	before := asJSON(c.Snapshot)
	want := askPlainly(ctx, t, c)
	facts := cluster.New(c.Snapshot)
	found, err := target.Find(facts, Options{Object: api.Ref(api.KindPod, fleet.Namespace, fleet.Waiting), AllRemedies: true})
	if err != nil {
		return err
	}
	explained := func() (*builder, error) {
		v, err := verdict.Decide(ctx, facts, found, nil)
		if err != nil {
			return nil, err
		}
		x := newBuilder(v, withAdvice)
		_, err = x.explanation(ctx)
		return x, err
	}
	x, err := explained()
	if err != nil {
		return err
	}
	if asJSON(c.Snapshot) != before {
		return errors.New("the snapshot was changed")
	}
	table.count(ctx, t, c, want, x.out)
	if want.random {
		// Pools come in random order, and with it errors of selectors.
		return nil
	}
	again, err := explained()
	if err != nil {
		return err
	}
	// Upstream takes the pools in random order.
	if diff := cmp.Diff(x.out, again.out, cmpopts.IgnoreTypes([]api.AllocatedDevice(nil))); diff != "" {
		return fmt.Errorf("another answer to the same question:\n%s", diff)
	}
	p := property{ctx: ctx, t: t, Case: c, builder: x, want: want}
	return errors.Join(p.sameVerdict(), p.nodesInGroups(), p.headlineCounts(table), p.funnelsAddUp(), p.singleDevices(), p.placementFromFunnel(),
		p.decision(table), p.conflictIsMinimal(table), p.remediesHold(table), p.outlookHolds(table))
}

// coverage counts what happened in all cases.
type coverage struct {
	mutex    sync.Mutex
	cases    int
	features map[string]int
	matters  map[string]int
	codes    map[api.Code]int
	verdicts map[api.Verdict]int
	checks   map[string]int
}

func newCoverage() *coverage {
	return &coverage{
		features: map[string]int{}, matters: map[string]int{}, codes: map[api.Code]int{}, verdicts: map[api.Verdict]int{}, checks: map[string]int{},
	}
}

// count notes what a case has, and which of its features matter: without them,
// the allocator has another answer for some node.
func (k *coverage) count(ctx context.Context, t *testing.T, c *fleet.Case, want plainAnswer, e *api.Explanation) {
	t.Helper()
	var matters []string
	for _, name := range c.Features {
		if without := askPlainly(ctx, t, c.Without(name)); !maps.Equal(without.outcomes, want.outcomes) {
			matters = append(matters, name)
		}
	}
	codes := map[api.Code]bool{}
	for _, group := range e.Nodes {
		codes[group.Code] = true
	}
	for _, claim := range e.Claims {
		for _, r := range claim.Requests {
			for _, rejection := range r.Rejected {
				codes[rejection.Code] = true
			}
		}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.cases++
	k.verdicts[e.Verdict]++
	for _, name := range c.Features {
		k.features[name]++
	}
	for _, name := range matters {
		k.matters[name]++
	}
	for code := range codes {
		k.codes[code]++
	}
}

func (k *coverage) checked(what string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.checks[what]++
}

// String returns the table.
func (k *coverage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s %7s %10s\n", "feature", "cases", "it matters")
	for _, f := range fleet.Features() {
		fmt.Fprintf(&b, "%-40s %7d %10d\n", f.Name, k.features[f.Name], k.matters[f.Name])
	}
	rows := func(title string, counts map[string]int) {
		fmt.Fprintf(&b, "\n%-40s %7s\n", title, "cases")
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(&b, "%-40s %7d\n", name, counts[name])
		}
	}
	rows("reason code", texts(k.codes))
	rows("verdict", texts(k.verdicts))
	rows("check", k.checks)
	return b.String()
}

func texts[K ~string](counts map[K]int) map[string]int {
	out := map[string]int{}
	for key, n := range counts {
		if key != "" {
			out[string(key)] = n
		}
	}
	return out
}

// gaps tells what occurs too rarely for the cases to prove much.
func (k *coverage) gaps() []string {
	var gaps []string
	for _, f := range fleet.Features() {
		if k.matters[f.Name] < k.cases/200 {
			gaps = append(gaps, fmt.Sprintf("%s: matter in %d of %d cases only", f.Name, k.matters[f.Name], k.cases))
		}
	}
	for _, code := range []api.Code{
		api.NodeNotReachable, api.NodeUnsuitable, api.PoolIncomplete, api.PoolInvalid, api.PoolObsolete, api.ClassNotFound, api.ClassSelectorFalse,
		api.RequestSelectorFalse, api.SelectorError, api.DeviceAllocated, api.DeviceTainted, api.CapacityInsufficient, api.CountersExhausted,
		api.CompatibilityGroupConflict, api.AttributeMissing, api.ConstraintUnsatisfiable, api.CountUnsatisfiable, api.RequestsCompete,
		api.BindingConditionsUnsupported, api.NodeOperationUnsupported, api.FeatureDisabled, api.ClaimLimitExceeded, api.AdminAccessDenied, api.ClaimNotReady,
	} {
		if k.codes[code] < 5 {
			gaps = append(gaps, fmt.Sprintf("code %s: in %d cases only", code, k.codes[code]))
		}
	}
	for _, verdict := range []api.Verdict{api.Fits, api.DoesNotFit, api.Error} {
		if k.verdicts[verdict] < k.cases/8 {
			gaps = append(gaps, fmt.Sprintf("verdict %s: in %d of %d cases only", verdict, k.verdicts[verdict], k.cases))
		}
	}
	for _, check := range []string{checkInfeasible, checkFeasible, checkConflict, checkRemedy} {
		if k.checks[check] < k.cases/20 {
			gaps = append(gaps, fmt.Sprintf("%s: %d times in %d cases only", check, k.checks[check], k.cases))
		}
	}
	return gaps
}

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
