// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func expressionsOf(snap *snapshot.Snapshot) (*cluster.Cluster, *DeviceEvaluator) {
	facts := cluster.New(snap)
	var list []*cluster.Device
	all := facts.Pools.Devices()
	for i := range all {
		list = append(list, &all[i])
	}
	return facts, NewDeviceEvaluator(facts, list, nil)
}

// upstreamOutcomes returns what the scheduler's library says about an expression, device by device;
// nil if it does not compile.
func upstreamOutcomes(t *testing.T, facts *cluster.Cluster, list []*cluster.Device, expression string) []selector.Outcome {
	t.Helper()
	compiled := dracel.GetCompiler(facts.Gates.CEL()).CompileCELExpression(expression, dracel.Options{})
	if compiled.Error != nil {
		return nil
	}
	outcomes := []selector.Outcome{}
	for _, d := range list {
		matches, _, err := compiled.DeviceMatches(t.Context(), dracel.Device{
			Driver: d.ID.Driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity,
		})
		switch {
		case err != nil:
			outcomes = append(outcomes, selector.Fails)
		case matches:
			outcomes = append(outcomes, selector.True)
		default:
			outcomes = append(outcomes, selector.False)
		}
	}
	return outcomes
}

func countOutcomes(outcomes []selector.Outcome) api.EvaluationOutcomes {
	var out api.EvaluationOutcomes
	for _, outcome := range outcomes {
		switch outcome {
		case selector.True:
			out.True++
		case selector.False:
			out.False++
		default:
			out.Fails++
		}
	}
	return out
}

func plusOutcomes(a, b api.EvaluationOutcomes, times int) api.EvaluationOutcomes {
	return api.EvaluationOutcomes{True: a.True + times*b.True, False: a.False + times*b.False, Fails: a.Fails + times*b.Fails}
}

// randomExpression returns an expression with values of random devices, sometimes with a
// typo.
func randomExpression(random *rand.Rand, list []*cluster.Device, depth int) string {
	sub := func() string { return randomExpression(random, list, depth-1) }
	if depth > 0 {
		switch random.IntN(7) {
		case 0, 1:
			return sub() + " && " + sub()
		case 2:
			return "(" + sub() + " || " + sub() + ")"
		case 3:
			return "!(" + sub() + ")"
		case 4:
			return "(" + sub() + " ? " + sub() + " : " + sub() + ")"
		}
	}
	d := list[random.IntN(len(list))]
	readings := []selector.Reading{{Kind: selector.KindDriver}}
	for name := range d.Attributes {
		readings = append(readings, selector.Attribute(name, d.ID.Driver))
	}
	for name := range d.Capacity {
		readings = append(readings, selector.Capacity(name, d.ID.Driver))
	}
	expression, ok := selector.Condition(readings[random.IntN(len(readings))], selector.Match(random.IntN(2)), d.ID.Driver, d.Device)
	if !ok {
		return "true"
	}
	switch random.IntN(12) {
	case 0:
		return strings.Replace(expression, "example", "exmaple", 1)
	case 1:
		return strings.Replace(expression, "device", "devcie", 1)
	case 2:
		return strings.Replace(expression, "==", "=", 1)
	}
	return expression
}

// TestExpressionsAgreeWithUpstream holds everything that is said about random expressions and
// devices against the scheduler's library.
func TestExpressionsAgreeWithUpstream(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(120) {
		facts, devices := expressionsOf(fleet.Random(seed).Snapshot)
		if devices.Len() == 0 {
			continue
		}
		random := rand.New(rand.NewPCG(seed, 0))
		for range 5 {
			expression, other := randomExpression(random, devices.list, 3), randomExpression(random, devices.list, 2)
			want := upstreamOutcomes(t, facts, devices.list, expression)
			e, err := devices.Evaluate(t.Context(), expression)
			if err != nil {
				t.Fatal(err)
			}
			if (want == nil) != (e.Problem != nil) {
				t.Fatalf("seed %d: %s: the problem is %+v, upstream's outcomes %v", seed, expression, e.Problem, want)
			}
			for _, s := range e.Suggestions {
				seen[string(s.Reason)]++
				if outcomes := countOutcomes(upstreamOutcomes(t, facts, devices.list, s.Expression)); outcomes != s.Outcomes {
					t.Errorf("seed %d: suggestion %s is %+v, want %+v", seed, s.Expression, s.Outcomes, outcomes)
				}
			}
			if want == nil {
				seen["problem"]++
				continue
			}
			checkOutcomes(t, fmt.Sprintf("seed %d: %s", seed, expression), e, want)
			seen["true"] += min(1, e.Outcomes.True)
			seen["fails"] += min(1, e.Outcomes.Fails)
			seen["parts"] += len(e.Parts)
			checkComparison(t, facts, devices, e, want, other, seen)
		}
	}
	for _, what := range []string{"problem", "true", "fails", "parts", "compared", string(api.SuggestCorrection), string(api.SuggestGuard)} {
		if seen[what] < 10 {
			t.Errorf("%s only %d times", what, seen[what])
		}
	}
}

func checkOutcomes(t *testing.T, what string, e *api.Evaluation, want []selector.Outcome) {
	t.Helper()
	if e.Outcomes != countOutcomes(want) {
		t.Errorf("%s: %+v, want %+v", what, e.Outcomes, countOutcomes(want))
	}
	var byDriver, byNode api.EvaluationOutcomes
	for _, d := range e.Drivers {
		byDriver = plusOutcomes(byDriver, d.Outcomes, 1)
	}
	for _, n := range e.Nodes {
		byNode = plusOutcomes(byNode, n.Outcomes, max(1, n.Count))
	}
	failures := 0
	for _, f := range e.Failures {
		failures += f.Count
	}
	if byDriver != e.Outcomes || byNode != e.Outcomes || failures != e.Outcomes.Fails {
		t.Errorf("%s: by driver %+v, by node %+v, failures %d, want %+v", what, byDriver, byNode, failures, e.Outcomes)
	}
	for _, part := range e.Parts {
		o := part.Outcomes
		if o.True+o.False+o.Fails+o.NotEvaluated != e.Devices {
			t.Errorf("%s: part %s has %+v, want %d in all", what, part.Expression, o, e.Devices)
		}
	}
}

func checkComparison(t *testing.T, facts *cluster.Cluster, devices *DeviceEvaluator, e *api.Evaluation, before []selector.Outcome, other string, seen map[string]int) {
	t.Helper()
	after := upstreamOutcomes(t, facts, devices.list, other)
	if err := devices.Compare(t.Context(), e, other); err != nil {
		t.Fatal(err)
	}
	if (after == nil) != (e.Comparison.Problem != nil) {
		t.Fatalf("%s: the problem is %+v, upstream's outcomes %v", other, e.Comparison.Problem, after)
	}
	if after == nil {
		return
	}
	seen["compared"]++
	different := map[[2]string]int{}
	for i := range after {
		if before[i] != after[i] {
			different[[2]string{string(before[i]), string(after[i])}]++
		}
	}
	for _, d := range e.Comparison.Differences {
		if key := [2]string{d.From, d.To}; different[key] != d.Count {
			t.Errorf("%s against %s: %v for %d devices, want %d", e.Expression, other, key, d.Count, different[key])
		}
		delete(different, [2]string{d.From, d.To})
	}
	if len(different) > 0 || e.Comparison.Outcomes != countOutcomes(after) {
		t.Errorf("%s against %s: not told %v; %+v, want %+v", e.Expression, other, different, e.Comparison.Outcomes, countOutcomes(after))
	}
}

// TestExpressionsLikeAgreeWithUpstream wants of each expression for devices like one of them
// that it is true for these and false for all others.
func TestExpressionsLikeAgreeWithUpstream(t *testing.T) {
	found := 0
	for seed := range uint64(100) {
		facts, devices := expressionsOf(fleet.Random(seed).Snapshot)
		if devices.Len() == 0 {
			continue
		}
		device := devices.list[int(seed)%devices.Len()]
		e, err := devices.Like(t.Context(), device)
		if err != nil {
			t.Fatal(err)
		}
		for i, expression := range e.Like.Selectors {
			found++
			if i > 0 && len(expression) < len(e.Like.Selectors[i-1]) {
				t.Errorf("seed %d: %s comes after a longer one", seed, expression)
			}
			outcomes := upstreamOutcomes(t, facts, devices.list, expression)
			if got := countOutcomes(outcomes); got.True != e.Like.Count || got.Fails > 0 {
				t.Errorf("seed %d: %s is %+v, want true for %d and no failures", seed, expression, got, e.Like.Count)
			}
			for k, d := range devices.list {
				if d == device && outcomes[k] != selector.True {
					t.Errorf("seed %d: %s is %s for the device itself", seed, expression, outcomes[k])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d expressions were found", found)
	}
}

func TestExpressionsLike(t *testing.T) {
	gpu := func(name, model, uuid string) tc.DeviceWrapper {
		return tc.Device(name, "model="+model, "uuid="+uuid, "memory:=80Gi", "resource.kubernetes.io/pcieRoot=pci0000:17")
	}
	snap := tc.Cluster(
		tc.Pool("n1", gpu("gpu-0", "A", "u0"), gpu("gpu-1", "A", "u1"), gpu("gpu-2", "B", "u2")),
		tc.Slice("nics", "nic.example.com", "n1", tc.Device("nic-0", "model=A")),
	)
	_, devices := expressionsOf(snap)
	e, err := devices.Like(t.Context(), devices.list[0])
	if err != nil {
		t.Fatal(err)
	}
	if e.Like.Count != 2 || strings.Join(e.Like.LeftOut, " ") != "gpu.example.com/uuid resource.kubernetes.io/pcieRoot" || strings.Join(e.Like.Same, " ") != "gpu.example.com/model gpu.example.com/memory" {
		t.Errorf("%+v", e.Like)
	}
	if want := `device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "A"`; e.Expression != want {
		t.Errorf("the shortest is %s, want %s", e.Expression, want)
	}
}

// TestExpressionSuggestions covers typos and their corrections.
func TestExpressionSuggestions(t *testing.T) {
	_, devices := expressionsOf(tc.Cluster(tc.Pool("n1", tc.Devices(2, "model=A")...), tc.Slice("nics", "nic.example.com", "n1", tc.Device("nic-0"))))
	for expression, want := range map[string][]string{
		`device.attributes["gpu.example.com"].modle == "A"`: {`device.attributes["gpu.example.com"].model == "A"`, `has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "A"`},
		`device.atributes["gpu.example.com"].?model == "A"`: nil,
		`devce.driver == "gpu.example.com"`:                 {`device.driver == "gpu.example.com"`},
		`device.attributes["gpu.example.com"].model == "A"`: {`has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "A"`},
		`device.driver == "gpu.example.com"`:                nil,
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "a"`: {
			`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "A"`,
		},
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "B"`: nil,
		`device.driver ==`: nil,
		`has(device.attributes["gpu.example.com"].nothing1)`: nil,
	} {
		e, err := devices.Evaluate(t.Context(), expression)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range e.Suggestions {
			got = append(got, s.Expression)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: suggested %q, want %q", expression, got, want)
		}
	}
}

// BenchmarkExpressions evaluates on a large cluster of equal and of different devices.
func BenchmarkExpressions(b *testing.B) {
	snap := fleet.Mixed(5000)
	for b.Loop() {
		_, devices := expressionsOf(snap)
		b.ReportMetric(float64(devices.Len()), "devices")
		if _, err := devices.Evaluate(b.Context(), `device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model != "x"`); err != nil {
			b.Fatal(err)
		}
	}
}
