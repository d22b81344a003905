// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// waits returns a pod of some age and priority with a claim of its own.
func waits(name string, devices int64, minutes, priority int, changes ...func(*corev1.Pod)) []any {
	pod := tc.Pod(name, tc.UsingClaim("gpu", name), func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-time.Duration(minutes) * time.Minute))
		p.Spec.Priority = new(int32(priority))
	})
	for _, change := range changes {
		change(pod)
	}
	return []any{tc.Claim(name, tc.GPUs("gpu", devices)), pod}
}

// runs returns a pod with some devices of a node.
func runs(name, node string, priority int, devices ...string) []any {
	claim := tc.Claim("of-"+name, tc.GPUs("gpu", int64(len(devices)))).ReservedFor(name, string(tc.UID(name)))
	for _, device := range devices {
		claim = claim.Holding(node + "/" + device)
	}
	return []any{claim, tc.Pod(name, tc.Using("of-"+name), tc.RunningOn(node), func(p *corev1.Pod) { p.Spec.Priority = new(int32(priority)) })}
}

func start(t *testing.T, snap *snapshot.Snapshot) *cluster.Cluster {
	t.Helper()
	tc.Unchanged(t, snap)
	state := cluster.New(snap)
	return state
}

func planOf(t *testing.T, state *cluster.Cluster) *api.Plan {
	t.Helper()
	out, err := forecast.MakePlan(t.Context(), state, false)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// text writes a plan in a line: each pod with its outcome, its node, and whom it waits
// behind.
func text(out *api.Plan) string {
	var parts []string
	for i := range out.Pods {
		p := &out.Pods[i]
		part := p.Name + " " + string(p.Outcome)
		if p.Node != "" {
			part += " " + p.Node
		}
		for j := range p.Behind {
			part += " <" + p.Behind[j].Name
		}
		if p.Today != nil {
			part += " today " + string(p.Today.Outcome) + p.Today.Node
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func TestOutcomes(t *testing.T) {
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "hold"}} }
	elsewhere := func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }
	together := func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "x"}
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "y"}}, TopologyKey: corev1.LabelHostname,
		}}}}
	}
	near := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "y"} }
	for name, test := range map[string]struct {
		parts []any
		want  string
	}{
		"by priority, then age": {
			slices.Concat(waits("a", 1, 1, 0), waits("b", 1, 9, 0), waits("c", 1, 5, 10)),
			"c Placed n1; b Placed n1; a Waiting <c <b",
		},
		"never": {waits("a", 3, 1, 0), "a Never"},
		"waiting does not help, and a pool is incomplete": {
			slices.Concat(waits("a", 3, 1, 0), []any{tc.Nodes("n2"), tc.Pool("n2", tc.Devices(2)...).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.ResourceSliceCount = 2 })}), "a NotByWaiting",
		},
		"a class that is gone": {[]any{tc.Claim("a", tc.Request("gpu", "nonesuch", 1)), tc.Pod("a", tc.Using("a"))}, "a Never"},
		"behind those that run": {
			slices.Concat(waits("a", 2, 1, 0), runs("r", "n1", 0, "gpu-0"), runs("s", "n1", 0, "gpu-1")),
			"a Waiting <r <s",
		},
		"only the one that is in the way": {
			slices.Concat(waits("a", 1, 1, 0), runs("low", "n1", 0, "gpu-0"), runs("high", "n1", 5, "gpu-1")),
			"a Waiting <low",
		},
		"a smaller one behind one that never fits": {slices.Concat(waits("a", 3, 9, 0), waits("b", 1, 1, 0)), "a Never; b Placed n1"},
		"gated":                  {slices.Concat(waits("a", 1, 1, 0), waits("b", 1, 9, 0, gated)), "a Placed n1; b Gated"},
		"another scheduler":      {waits("a", 1, 1, 0, elsewhere), "a Undetermined"},
		"near one that is later": {slices.Concat(waits("a", 1, 9, 0, together), waits("b", 1, 1, 0, near)), "a Placed n1; b Placed n1"},
		"nobody":                 {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.parts, tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...))...)
			if got := text(planOf(t, start(t, snap))); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestReasonsOfNodesThatAreSelected covers pods that select cordoned nodes: the message
// says why these cannot be used, not that the pod does not select the others.
func TestReasonsOfNodesThatAreSelected(t *testing.T) {
	of := func(names ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: tc.NodeSelector(corev1.LabelHostname, names...),
			}}
		}
	}
	for name, test := range map[string]struct {
		pod  func(*corev1.Pod)
		want string
	}{
		"one, by nodeSelector": {
			func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"} },
			"Node n1: cordoned.",
		},
		"one, by affinity": {of("n1"), "Node n1: cordoned."},
		"two":              {of("n1", "n2"), "2 nodes: cordoned."},
	} {
		t.Run(name, func(t *testing.T) {
			parts := []any{tc.Nodes("n1", "n2", "n3", "n4", "n5")}
			for _, node := range []string{"n1", "n2", "n3", "n4", "n5"} {
				parts = append(parts, tc.Pool(node, tc.Devices(2)...))
			}
			for _, node := range []string{"n1", "n2"} {
				parts = append(parts, tc.ChangeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = true }))
			}
			out := planOf(t, start(t, tc.Cluster(append(parts, waits("a", 1, 1, 0, test.pod)...)...)))
			if p := out.Pods[0]; p.Outcome != api.PlanWaiting || p.Code != api.NodeUnsuitable || p.Reason != test.want {
				t.Errorf("%s, %s: %s", p.Outcome, p.Code, p.Reason)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	owned := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
	}
	parts := slices.Concat(waits("a", 1, 9, 0), waits("b", 1, 1, 0), runs("r", "n1", 0, "gpu-0"), runs("bare", "n1", 0, "gpu-1"))
	owned(parts[5].(*corev1.Pod)) //nolint:errcheck // it is one
	snap := tc.Cluster(append(parts, tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(1)...))...)
	for name, test := range map[string]struct {
		conditions forecast.Conditions
		want       string
	}{
		"without the first":     {forecast.Conditions{Without: [][2]string{{tc.Namespace, "a"}}}, "b Placed n2 today Waiting"},
		"without one that runs": {forecast.Conditions{Without: [][2]string{{tc.Namespace, "r"}}}, "a Placed n1; b Placed n2 today Waiting"},
		"one more node":         {forecast.Conditions{Add: []forecast.NewNodes{{Like: "n2", Count: 1}}}, "a Placed n2; b Placed n2-new-0 today Waiting"},
		"drained":               {forecast.Conditions{Drain: []string{"n1"}}, "a Placed n2; b Waiting <a; r Waiting <a today n1"},
		"drained, and another":  {forecast.Conditions{Drain: []string{"n1"}, Add: []forecast.NewNodes{{Like: "n1", Count: 1}}}, "a Placed n1-new-0; b Placed n1-new-0 today Waiting; r Placed n2 today n1"},
	} {
		t.Run(name, func(t *testing.T) {
			comparesAs(t, snap, &test.conditions, test.want)
		})
	}
	if _, _, err := (&forecast.Conditions{Drain: []string{"n3"}}).Apply(start(t, snap)); err == nil {
		t.Error("a node that does not exist was drained")
	}
}

// comparesAs decides the queue under conditions, as a difference to today.
func comparesAs(t *testing.T, snap *snapshot.Snapshot, conditions *forecast.Conditions, want string) {
	t.Helper()
	state := start(t, snap)
	after, words, err := conditions.Apply(state)
	if err != nil || len(words) == 0 {
		t.Fatal(words, err)
	}
	out := planOf(t, after)
	forecast.ComparePlan(out, planOf(t, state), state)
	if got := text(out); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestOtherRelease decides the queue of a cluster as other releases would, as a difference
// to today: partitions are used by default since 1.36.
func TestOtherRelease(t *testing.T) {
	snap := tc.Cluster(append(waits("a", 1, 9, 0), tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slots=1"),
		tc.Pool("n1", tc.Device("a").Consuming("board", "slots=1")).Of(2), func(s *snapshot.Snapshot) { s.ServerVersion = "v1.35.2" })...)
	for name, test := range map[string]struct {
		conditions forecast.Conditions
		want       string
	}{
		"the same release":      {forecast.Conditions{KubernetesVersion: "v1.35.2"}, "a Never"},
		"a newer release":       {forecast.Conditions{KubernetesVersion: "v1.36.0"}, "a Placed n1 today Never"},
		"a newer one without":   {forecast.Conditions{KubernetesVersion: "v1.36.0", Gates: map[string]bool{"DRAPartitionableDevices": false}}, "a Never"},
		"the same one, with it": {forecast.Conditions{Gates: map[string]bool{"DRAPartitionableDevices": true}}, "a Placed n1 today Never"},
	} {
		t.Run(name, func(t *testing.T) {
			comparesAs(t, snap, &test.conditions, test.want)
		})
	}
}

// TestLimitedJobs says how long a pod of a Job runs at most that another one waits behind.
func TestLimitedJobs(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, uid string
		want           *int64
	}{
		"its Job":                    {tc.Namespace, "train", new(int64(3000))},
		"another Job":                {tc.Namespace, "other", nil},
		"a Job of another namespace": {"other", "train", nil},
	} {
		t.Run(name, func(t *testing.T) {
			parts := append(runs("r", "n1", 0, "gpu-0"), waits("a", 1, 1, 0)...)
			snap := tc.Cluster(append(parts, tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...))...)
			snap.Pod(tc.Namespace, "r").OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "train", Controller: new(true)}}
			snap.Workloads = []*snapshot.Workload{{
				TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "train", UID: types.UID(test.uid)},
				Limit: &snapshot.JobLimit{ActiveDeadlineSeconds: 3600, StartTime: metav1.NewTime(tc.Taken().Add(-10 * time.Minute))},
			}}
			out := planOf(t, start(t, snap))
			if got := out.Pods[0].Behind; len(got) != 1 || got[0].Name != "r" || !ptr.Equal(got[0].EndsWithinSeconds, test.want) {
				t.Errorf("a waits behind %+v", got)
			}
		})
	}
}

// TestProperties covers random queues: no device goes to two pods, and nobody is left
// waiting who fits after all are placed.
func TestProperties(t *testing.T) {
	placed, waiting := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 18))
		var parts []any
		for n := range 1 + r.IntN(3) {
			name := fmt.Sprintf("n%d", n)
			parts = append(parts, tc.Nodes(name), tc.Pool(name, tc.Devices(1+r.IntN(4))...))
		}
		if r.IntN(2) == 0 {
			parts = append(parts, tc.Slice("net", tc.Driver, "net", tc.Devices(1+r.IntN(2))...).OnAllNodes())
		}
		for i := range 2 + r.IntN(8) {
			parts = append(parts, waits(fmt.Sprintf("p%d", i), int64(1+r.IntN(3)), r.IntN(60), r.IntN(3))...)
		}
		state := start(t, tc.Cluster(parts...))
		decisions, after, err := explain.DecideQueue(t.Context(), state, state.Waiting(), explain.QueueOptions{Outlook: true})
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]string{}
		for _, claim := range after.Snapshot.Claims {
			if claim.Status.Allocation == nil {
				continue
			}
			for _, d := range claim.Status.Allocation.Devices.Results {
				key := d.Pool + "/" + d.Device
				if other := has[key]; other != "" {
					t.Errorf("seed %d: %s and %s have %s", seed, other, claim.Name, key)
				}
				has[key] = claim.Name
			}
		}
		for i := range decisions {
			if decisions[i].Reservation != nil {
				placed++
				continue
			}
			waiting++
			if fits, err := allocator.Place(t.Context(), after, decisions[i].Pod, nil); fits != nil || err != nil {
				t.Errorf("seed %d: %s waits and fits on %v (%v)", seed, decisions[i].Pod.Name, fits, err)
			}
		}
	}
	if placed < 50 || waiting < 50 {
		t.Errorf("%d placed, %d waiting: too few to mean anything", placed, waiting)
	}
}
