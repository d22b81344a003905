// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/trial"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// withRoom returns a snapshot whose nodes take pods.
func withRoom(objects ...any) *snapshot.Snapshot {
	snap := tc.Snapshot(objects...)
	for _, node := range snap.Nodes {
		node.Status.Allocatable = tc.ResourceList("cpu=8", "memory=32Gi", "pods=110")
	}
	return snap
}

func stateOf(t *testing.T, objects ...any) *cluster.Cluster {
	t.Helper()
	s := cluster.New(withRoom(objects...))
	return s
}

// plan plans one trial on each of the given classes, all if there are none.
func plan(t *testing.T, s *cluster.Cluster, change func(*trial.Options), driver string, classes ...string) *trial.Plan {
	t.Helper()
	cases, skipped, err := trial.OfClasses(t.Context(), s, classes, driver)
	if err != nil {
		t.Fatal(err)
	}
	o := &trial.Options{
		Namespace: trial.Namespace("kubectl-dra-test-x", "here/1", begin, false), Repeat: 1, Parallel: 1,
		Pod: trial.PodOptions{Image: "busybox", Tolerations: trial.TolerationsFor(s.Snapshot)},
	}
	if change != nil {
		change(o)
	}
	p, err := trial.NewPlan(t.Context(), s, cases, o)
	if err != nil {
		t.Fatal(err)
	}
	p.Skipped = append(skipped, p.Skipped...)
	return p
}

// planText returns what a plan comes down to: each trial with its node and devices, each
// that is skipped or fails with the reason.
func planText(p *trial.Plan) string {
	var texts []string
	for i := range p.Groups {
		for j := range p.Groups[i].Trials {
			dry := p.Groups[i].Trials[j].Dry()
			text := dry.Name + ":"
			for k := range dry.Devices {
				text += " " + trial.DeviceName(&dry.Devices[k])
			}
			texts = append(texts, text)
		}
	}
	for i := range p.Failed {
		texts = append(texts, p.Failed[i].Name+" fails")
	}
	for _, s := range p.Skipped {
		texts = append(texts, strings.TrimSpace(s.Class+" "+s.Node)+" "+string(s.Reason))
	}
	return strings.Join(texts, "; ")
}

func TestPlan(t *testing.T) {
	gpus := func(node string, n int) any { return tc.Pool(node, tc.Devices(n)...) }
	for name, test := range map[string]struct {
		objects []any
		change  func(*trial.Options)
		driver  string
		classes []string
		want    string
	}{
		"one for each class": {
			[]any{tc.Node("a"), gpus("a", 2), tc.Class("gpu", tc.Driver), tc.Class("none", "other.example.com")},
			nil, "", nil,
			"gpu, round 1: gpu.example.com/a/gpu-0; none NoDevices",
		},
		"the last one": {
			[]any{tc.Node("a"), gpus("a", 1), tc.Class("gpu", tc.Driver)}, nil, "", nil, "gpu LastDevice",
		},
		"the last one of the cluster, not of the node": {
			[]any{tc.Node("a"), tc.Node("b"), gpus("a", 1), gpus("b", 1), tc.Class("gpu", tc.Driver)},
			func(o *trial.Options) { o.Node = "b" }, "", nil, "gpu on b, round 1: gpu.example.com/b/gpu-0",
		},
		"the last one, with --yes": {
			[]any{tc.Node("a"), gpus("a", 1), tc.Class("gpu", tc.Driver)},
			func(o *trial.Options) { o.TakeLast = true }, "", nil,
			"gpu, round 1: gpu.example.com/a/gpu-0",
		},
		"none is free": {
			[]any{tc.Node("a"), gpus("a", 1), tc.Class("gpu", tc.Driver), tc.Serving("c", "a", "gpu-0")}, nil, "", nil, "gpu NothingFree",
		},
		"those in use are left alone": {
			[]any{tc.Node("a"), gpus("a", 3), tc.Class("gpu", tc.Driver), tc.Serving("c", "a", "gpu-0")},
			nil, "", nil,
			"gpu, round 1: gpu.example.com/a/gpu-1",
		},
		"a class whose expression fails": {
			[]any{tc.Node("a"), gpus("a", 2), tc.ClassWhere("gpu", `device.attributes["gpu.example.com"].none == "x"`)}, nil, "", []string{"gpu"}, "gpu NoDevices",
		},
		"on all nodes where it fits, each twice": {
			[]any{tc.Node("a"), tc.Node("b"), tc.Node("c"), gpus("a", 1), gpus("b", 1), gpus("c", 1), tc.Class("gpu", tc.Driver), tc.Serving("x", "b", "gpu-0")},
			func(o *trial.Options) { o.AllNodes, o.Repeat = true, 2 }, "", nil,
			"gpu on a, round 1: gpu.example.com/a/gpu-0; gpu on c, round 1: gpu.example.com/c/gpu-0; gpu on a, round 2: gpu.example.com/a/gpu-0; gpu on c, round 2: gpu.example.com/c/gpu-0; gpu b NodeDoesNotFit",
		},
		"of one driver": {
			[]any{tc.Node("a"), gpus("a", 2), tc.Slice("n", "nic.example.com", "a", tc.Devices(2)...).OnNode("a"), tc.ClassWhere("any", "true"), tc.Class("gpu", tc.Driver)},
			nil, "nic.example.com", nil, "any, round 1: nic.example.com/a/gpu-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, stateOf(t, test.objects...), test.change, test.driver, test.classes...)
			if got := planText(p); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestParallel makes no more trials at the same time than leave one device free.
func TestParallel(t *testing.T) {
	for _, test := range []struct {
		devices, want int
		yes           bool
	}{{3, 2, false}, {3, 3, true}, {10, 4, false}} {
		s := stateOf(t, tc.Node("a"), tc.Pool("a", tc.Devices(test.devices)...), tc.Class("gpu", tc.Driver))
		p := plan(t, s, func(o *trial.Options) { o.Parallel, o.Repeat, o.TakeLast = 4, 8, test.yes }, "")
		if got := p.Groups[0].Parallel; got != test.want || len(p.Groups[0].Trials) != 8 {
			t.Errorf("%d devices: %d at the same time, want %d", test.devices, got, test.want)
		}
	}
}

// TestSharedDevice leaves a device alone that others share.
func TestSharedDevice(t *testing.T) {
	shared := tc.Device("gpu-0", "memory", "10Gi").Shareable()
	objects := []any{tc.Node("a"), tc.Pool("a", shared, tc.Device("gpu-1", "memory", "10Gi").Shareable()), tc.Class("gpu", tc.Driver)}
	gate := func(s *snapshot.Snapshot) {
		s.Gates = map[string]snapshot.Gate{"DRAConsumableCapacity": {Enabled: true}}
	}
	for name, claim := range map[string]any{"free": tc.Claim("unallocated", tc.GPUs("g", 1)), "in use": tc.Sharing("c", "a", "gpu-0", "memory", "1Gi")} {
		snap := withRoom(append(objects, claim)...)
		gate(snap)
		s := cluster.New(snap)
		got := planText(plan(t, s, nil, "", "gpu"))
		if want := map[string]string{"free": "gpu, round 1: gpu.example.com/a/gpu-0", "in use": "gpu InUse"}[name]; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestTolerations tolerates dedicated nodes, but not cordoned ones.
func TestTolerations(t *testing.T) {
	tainted := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	a, b := tc.Node("a"), tc.Node("b")
	tainted("example.com/gpus")(a)
	tainted(corev1.TaintNodeUnschedulable)(b)
	b.Spec.Unschedulable = true
	s := stateOf(t, a, b, tc.Pool("a", tc.Devices(2)...), tc.Pool("b", tc.Devices(2)...), tc.Class("gpu", tc.Driver))
	if got, want := planText(plan(t, s, func(o *trial.Options) { o.AllNodes = true }, "")), "gpu on a, round 1: gpu.example.com/a/gpu-0; gpu b NodeDoesNotFit"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOfManifests(t *testing.T) {
	objects := tc.Snapshot(tc.Claim("mine", tc.GPUs("gpu", 2)), tc.Template("made", tc.GPUs("gpu", 1)))
	cases, err := trial.OfManifests(objects, "claims.yaml")
	if err != nil || len(cases) != 2 || cases[0].File != "claims.yaml (mine)" || cases[0].Spec.Devices.Requests[0].Exactly.Count != 2 {
		t.Errorf("%v: %+v", err, cases)
	}
	if _, err := trial.OfManifests(tc.Snapshot(tc.Claim("all", tc.GPUs("gpu", 1).WithAdminAccess())), "c.yaml"); err == nil || !strings.Contains(err.Error(), "adminAccess") {
		t.Errorf("admin access is %v", err)
	}
}

func TestLeftover(t *testing.T) {
	alive := func(pid string) bool { return pid == "7" }
	for name, test := range map[string]struct {
		namespace *corev1.Namespace
		left      bool
	}{
		"its process is gone":      {trial.Namespace("kubectl-dra-test-a", "here/8", after(1000), false), true},
		"its process runs":         {trial.Namespace("kubectl-dra-test-a", "here/7", after(1000), false), false},
		"of another host":          {trial.Namespace("kubectl-dra-test-a", "there/8", after(1000), false), false},
		"its time is over":         {trial.Namespace("kubectl-dra-test-a", "there/7", after(-1), false), true},
		"of another name":          {trial.Namespace("research", "here/8", after(-1), false), false},
		"with nothing but a label": {&corev1.Namespace{}, false},
	} {
		if left, _ := trial.Leftover(test.namespace, "here", alive, begin); left != test.left {
			t.Errorf("%s: left over: %t, want %t", name, left, test.left)
		}
	}
}

// TestPredicted compares the prediction with the allocation.
func TestPredicted(t *testing.T) {
	s := stateOf(t, tc.Node("a"), tc.Pool("a", tc.Devices(3)...), tc.Class("gpu", tc.Driver))
	p := plan(t, s, nil, "", "gpu")
	group := &p.Groups[0]
	onNode, err := group.Predict(t.Context(), &group.Trials[0], "a")
	if err != nil {
		t.Fatal(err)
	}
	got := func(device string) *trial.Record {
		r := trial.NewRecord("case-1-1", begin)
		pod := trialPod(bound)
		pod.Spec.NodeName = "a"
		r.SeePod(pod, false, after(1))
		if device != "" {
			claim := trialClaim("", true)
			claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
				{Request: "device", Driver: tc.Driver, Pool: "a", Device: device},
			}}}
			r.SeeClaim(claim, false, after(2))
		}
		return r
	}
	for name, test := range map[string]struct {
		record        *trial.Record
		alone, others bool
		want          api.TestResult
	}{
		"as predicted":                        {got("gpu-0"), true, false, api.TestPassed},
		"another device":                      {got("gpu-1"), true, false, api.TestFailed},
		"another device, others changed":      {got("gpu-1"), true, true, api.TestUnknown},
		"another device, with other trials":   {got("gpu-1"), false, false, api.TestPassed},
		"an unknown device, with others":      {got("gpu-9"), false, false, api.TestFailed},
		"nothing was allocated":               {got(""), true, false, api.TestFailed},
		"nothing, but others took it, perhap": {got(""), true, true, api.TestUnknown},
	} {
		if check := trial.Predicted(test.record, onNode, test.alone, test.others); check.Result != test.want {
			t.Errorf("%s: %+v, want %s", name, check, test.want)
		}
	}
}

// TestExclusive finds another claim with the same device.
func TestExclusive(t *testing.T) {
	r := trial.NewRecord("case-1-1", begin)
	r.SeePod(trialPod(bound), false, after(1))
	claim := trialClaim("", true)
	claim.Status.Allocation = tc.Serving("x", "a", "gpu-0").Status.Allocation
	r.SeeClaim(claim, false, after(2))
	if check := trial.Exclusive(r, tc.Snapshot(tc.Serving("c", "a", "gpu-1"))); check.Result != api.TestPassed {
		t.Errorf("another device is allocated: %+v", check)
	}
	check := trial.Exclusive(r, tc.Snapshot(tc.Serving("c", "a", "gpu-0")))
	if check.Result != api.TestFailed || !strings.Contains(check.Message, "claim") || len(check.Evidence) != 1 {
		t.Errorf("the same device is allocated: %+v", check)
	}
	if check := trial.Released(r, tc.Snapshot()); check.Result != api.TestFailed {
		t.Errorf("the claim still has it: %+v", check)
	}
	r.SeeClaim(claim, true, after(3))
	if check := trial.Released(r, tc.Snapshot()); check.Result != api.TestPassed {
		t.Errorf("the claim is gone: %+v", check)
	}
}

func TestSummarize(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	report := &api.TestReport{Skipped: []api.SkippedTrial{{Class: "none", Reason: api.SkipNoDevices}}}
	for i := range 10 {
		report.Trials = append(report.Trials, api.Trial{Class: "gpu", Result: api.TestPassed, Stages: []api.TrialStage{{Stage: api.TrialPrepared, Result: api.TestPassed, Milliseconds: ms(int64(10 - i))}}})
	}
	trial.Summarize(report, false)
	if report.Result != api.TestPassed || report.Summary != "10 trials: 10 passed" || len(report.Times) != 1 {
		t.Fatalf("%s: %s, %+v", report.Result, report.Summary, report.Times)
	}
	if got := report.Times[0]; got.P50 != 5 || got.P90 != 9 || got.P99 != 10 || got.Max != 10 || got.Count != 10 {
		t.Errorf("percentiles %+v", got)
	}
	trial.Summarize(report, true)
	if report.Result != api.TestUnknown {
		t.Errorf("a class that was asked for was not tried out: %s", report.Result)
	}
	report.Trials[3].Result = api.TestFailed
	if trial.Summarize(report, false); report.Result != api.TestFailed {
		t.Errorf("one failed: %s", report.Result)
	}
}
