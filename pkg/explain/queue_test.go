// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// queuedPodOf returns a pod with a claim from a template, that old.
func queuedPodOf(name, template string, age time.Duration, changes ...func(*corev1.Pod)) any {
	return func(s *snapshot.Snapshot) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(s.TakenAt.Add(-age))}}
		fromTemplate(template)(pod)
		for _, change := range changes {
			change(pod)
		}
		s.Pods = append(s.Pods, pod)
	}
}

func explainEach(t *testing.T, snap *snapshot.Snapshot, targets ...string) map[string]*api.Explanation {
	t.Helper()
	c := cluster.New(snap)
	options := make([]Options, 0, len(targets))
	for _, target := range targets {
		kind, name, _ := strings.Cut(target, "/")
		options = append(options, Options{Object: api.Ref(kind, tc.Namespace, name)})
	}
	answers, err := ExplainEach(t.Context(), c, options)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*api.Explanation{}
	for i, answer := range answers {
		if answer.Err != nil {
			t.Fatalf("%s: %v", targets[i], answer.Err)
		}
		found[targets[i]] = answer.Explanation
	}
	return found
}

func TestPodsGetTheLastDeviceInTheOrderOfTheQueue(t *testing.T) {
	priority := func(n int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Priority = ptr.To(n) }
	}
	for name, test := range map[string]struct {
		pods  []any
		first string
	}{
		"the older one":                {[]any{queuedPodOf("a", "one", time.Minute), queuedPodOf("b", "one", time.Hour)}, "b"},
		"the higher priority":          {[]any{queuedPodOf("a", "one", time.Minute, priority(5)), queuedPodOf("b", "one", time.Hour)}, "a"},
		"of the same age, by the name": {[]any{queuedPodOf("b", "one", time.Hour), queuedPodOf("a", "one", time.Hour)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.pods, tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)))...)
			second := map[string]string{"a": "b", "b": "a"}[test.first]
			found := explainEach(t, snap, "Pod/a", "Pod/b")
			if e := found["Pod/"+test.first]; e.Verdict != api.Fits || e.Placement == nil || e.Queue != nil {
				t.Errorf("pod %s: %s: %s", test.first, e.Verdict, e.Summary)
			}
			e := found["Pod/"+second]
			if e.Verdict != api.DoesNotFit || e.Code != api.PodsCompete || e.Placement != nil {
				t.Errorf("pod %s: %s, code %s: %s", second, e.Verdict, e.Code, e.Summary)
			}
			if e.Queue == nil || e.Queue.BeforeCount != 1 || e.Queue.Before[0].Name != test.first || len(e.Queue.Before[0].Devices) != 1 {
				t.Fatalf("queue: %+v", e.Queue)
			}
			if want := fmt.Sprintf("Pod ml/%s, which is before it in the queue, gets gpu-0 on n1.", test.first); e.Summary != want {
				t.Errorf("summary %q, want %q", e.Summary, want)
			}
			// Asked about alone, the answer is the same.
			if alone := explainEach(t, snap, "Pod/"+second)["Pod/"+second]; alone.Verdict != e.Verdict || alone.Summary != e.Summary {
				t.Errorf("asked about alone: %s: %s", alone.Verdict, alone.Summary)
			}
		})
	}
}

// TestPriorityOfPodsFromFiles covers pods that do not exist yet and so have no priority:
// they get the priority of others of their class.
func TestPriorityOfPodsFromFiles(t *testing.T) {
	class := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.PriorityClassName = name } }
	running := func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning }
	unborn := func(p *corev1.Pod) { p.UID, p.CreationTimestamp = "", metav1.Time{} }
	parts := []any{
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("none", tc.GPUs("gpu", 9)), tc.Template("one", tc.GPUs("gpu", 1)),
		queuedPodOf("other", "none", time.Hour, class("urgent"), func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](1000) }, running),
		queuedPodOf("a", "one", time.Hour),
	}
	for name, first := range map[string]string{"urgent": "b", "system-node-critical": "b", "unknown": "a", "": "a"} {
		found := explainEach(t, tc.Cluster(append(parts, queuedPodOf("b", "one", 0, class(name), unborn))...), "Pod/a", "Pod/b")
		for _, pod := range []string{"a", "b"} {
			want := api.DoesNotFit
			if pod == first {
				want = api.Fits
			}
			if e := found["Pod/"+pod]; e.Verdict != want {
				t.Errorf("class %q: pod %s: %s: %s", name, pod, e.Verdict, e.Summary)
			}
		}
		const text = "the priority of PriorityClass unknown is not known: assumed that it is 0"
		if said := slices.Contains(found["Pod/b"].Assumptions, text); said != (name == "unknown") {
			t.Errorf("class %q: assumptions %q", name, found["Pod/b"].Assumptions)
		}
	}
}

func TestPodsThatDoNotFitTakeNothing(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)), tc.Template("two", tc.GPUs("gpu", 2)),
		queuedPodOf("large", "two", 2*time.Hour), queuedPodOf("gated", "one", time.Hour, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}} }),
		queuedPodOf("small", "one", time.Minute))
	if e := explainEach(t, snap, "Pod/small", "Pod/large", "Pod/gated")["Pod/small"]; e.Verdict != api.Fits {
		t.Errorf("%s: %s", e.Verdict, e.Summary)
	}
}

func TestReservedCPUAndPodSlots(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...), tc.Template("one", tc.GPUs("gpu", 1)),
		tc.ChangeNode("n1", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1") }),
		queuedPodOf("a", "one", time.Hour), queuedPodOf("b", "one", time.Minute))
	e := explainEach(t, snap, "Pod/b")["Pod/b"]
	if e.Verdict != api.DoesNotFit || e.Code != api.PodsCompete || e.Queue.Before[0].Name != "a" {
		t.Errorf("%s, code %s: %s", e.Verdict, e.Code, e.Summary)
	}
}

func TestReplicas(t *testing.T) {
	parts := []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)), deployment("web", "one")}
	desired := func(n int32) any {
		return func(s *snapshot.Snapshot) { s.Workloads[0].Replicas = &n }
	}
	labeled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }
	snap := tc.Cluster(append(parts, desired(5))...)
	e := explainEach(t, snap, "Deployment/web")["Deployment/web"]
	if e.Verdict != api.DoesNotFit || e.Members == nil || *e.Members.Desired != 5 || e.Members.Waiting != 5 || e.Members.FitNow != 2 || e.Members.WithDevices != 0 {
		t.Errorf("before it has pods: %s, %+v: %s", e.Verdict, e.Members, e.Summary)
	}
	if e := explainEach(t, tc.Cluster(append(parts, desired(2))...), "Deployment/web")["Deployment/web"]; e.Verdict != api.Fits || e.Members.FitNow != 2 {
		t.Errorf("two: %s, %+v: %s", e.Verdict, e.Members, e.Summary)
	}
	parts = append(parts, desired(5), queuedPodOf("web-1", "one", time.Hour, labeled), queuedPodOf("web-2", "one", time.Hour, labeled), queuedPodOf("web-3", "one", time.Hour, labeled))
	e = explainEach(t, tc.Cluster(parts...), "Deployment/web")["Deployment/web"]
	if e.Verdict != api.DoesNotFit || e.Code != api.PodsCompete || e.Members.Waiting != 3 || e.Members.FitNow != 2 || e.Queue != nil || e.Summary != "2 of 3 replicas fit, and the next one finds no devices left." {
		t.Errorf("with three pods: %s, %+v, %+v: %s", e.Verdict, e.Members, e.Queue, e.Summary)
	}
}

func TestEqualPodsShareTheAnswer(t *testing.T) {
	parts := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(3)...), tc.Template("two", tc.GPUs("gpu", 2))}
	targets := make([]string, 0, 4)
	for i := range 4 {
		parts = append(parts, queuedPodOf(fmt.Sprintf("p%d", i), "two", time.Hour-time.Duration(i)*time.Minute))
		targets = append(targets, fmt.Sprintf("Pod/p%d", i))
	}
	found := explainEach(t, tc.Cluster(parts...), targets...)
	for i, target := range targets {
		e := found[target]
		wanted := api.DoesNotFit
		if i == 0 {
			wanted = api.Fits
		}
		if e.Verdict != wanted || e.Target.Name != target[4:] || (e.SameAs.Kind == "") != (i == 0) || len(e.Pods) != 1 || e.Pods[0].Name != e.Target.Name {
			t.Errorf("%s: %s, the same as %v: %s", target, e.Verdict, e.SameAs, e.Summary)
		}
	}
}

// TestLabelsThatOthersSelectBy checks that labels make a difference only if a pod selects
// by them: a running pod keeps red pods away from its node.
func TestLabelsThatOthersSelectBy(t *testing.T) {
	labels := func(color, index string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"color": color, "index": index} }
	}
	away := []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "color", Operator: metav1.LabelSelectorOpIn, Values: []string{"red"}}},
	}}}
	parts := []any{
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...), tc.Template("one", tc.GPUs("gpu", 1)),
		queuedPodOf("red", "one", time.Hour, labels("red", "0")), queuedPodOf("blue", "one", time.Minute, labels("blue", "1")),
		queuedPodOf("blue-2", "one", time.Second, labels("blue", "2")),
	}
	for name, avoiding := range map[string]func(*corev1.Pod){
		"anti-affinity": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: away}}
		},
		"nobody": func(*corev1.Pod) {},
	} {
		t.Run(name, func(t *testing.T) {
			found := explainEach(t, tc.Cluster(append(parts, tc.Pod("runs", tc.RunningOn("n1"), avoiding))...), "Pod/red", "Pod/blue", "Pod/blue-2")
			avoided := name != "nobody"
			if e := found["Pod/red"]; (e.Verdict == api.DoesNotFit) != avoided {
				t.Errorf("red: %s: %s", e.Verdict, e.Summary)
			}
			if e := found["Pod/blue"]; e.Verdict != api.Fits || (e.SameAs.Kind == "") != avoided {
				t.Errorf("blue: %s: %s; same as %+v", e.Verdict, e.Summary, e.SameAs)
			}
			if e := found["Pod/blue-2"]; e.Verdict != api.Fits || e.SameAs.Kind == "" {
				t.Errorf("blue-2: %s: %s; same as %+v", e.Verdict, e.Summary, e.SameAs)
			}
		})
	}
}

// TestEquivalentPods covers pods with claims of their own, by name, that want the same:
// they share an answer, unless it names the claim, or other pods that wait use it as well.
func TestEquivalentPods(t *testing.T) {
	pod := func(name, claim string) any { return tc.Pod(name, tc.UsingClaim("gpus", claim)) }
	incomplete := tc.Pool("n1", tc.Devices(1)...).Of(2)
	for name, test := range map[string]struct {
		parts []any
		// same names the pod with which the second pod shares its answer.
		same string
		// says is part of its summary.
		says string
	}{
		"too many":         {[]any{tc.Pool("n1", tc.Devices(1)...), tc.Claim("one", tc.GPUs("gpu", 4)), tc.Claim("two", tc.GPUs("gpu", 4))}, "pod-a", "needs 4 devices"},
		"another number":   {[]any{tc.Pool("n1", tc.Devices(1)...), tc.Claim("one", tc.GPUs("gpu", 4)), tc.Claim("two", tc.GPUs("gpu", 5))}, "", "needs 5 devices"},
		"the claim named":  {[]any{incomplete, tc.Claim("one", tc.GPUs("gpu", 1).All()), tc.Claim("two", tc.GPUs("gpu", 1).All())}, "", "two, request gpu: asks for all devices"},
		"used by two pods": {[]any{tc.Pool("n1", tc.Devices(1)...), tc.Claim("one", tc.GPUs("gpu", 4)), tc.Claim("two", tc.GPUs("gpu", 4)), pod("c", "two")}, "", "needs 4 devices"},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.parts, tc.Nodes("n1"), pod("pod-a", "one"), pod("pod-b", "two"))...)
			c := cluster.New(snap)
			targets := []Options{{Object: api.Ref(api.KindPod, tc.Namespace, "pod-a")}, {Object: api.Ref(api.KindPod, tc.Namespace, "pod-b")}}
			answers, err := ExplainEquivalent(t.Context(), c, targets)
			if err != nil {
				t.Fatal(err)
			}
			second := answers[1].Explanation
			if same := second.SameAs.Name; same != test.same || !strings.Contains(second.Summary, test.says) || second.Claims[0].Name != "two" {
				t.Errorf("like %q with %q, of claim %s, want like %q with %q", same, second.Summary, second.Claims[0].Name, test.same, test.says)
			}
			each, err := ExplainEach(t.Context(), c, targets)
			if err != nil {
				t.Fatal(err)
			}
			if each[1].Explanation.SameAs.Kind != "" || each[1].Explanation.Summary != second.Summary || each[1].Explanation.Code != second.Code {
				t.Errorf("one by one it is %+v, want %q", each[1].Explanation, second.Summary)
			}
		})
	}
}
