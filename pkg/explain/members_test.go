// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// podGroup returns a PodGroup with the name workers: a gang if minCount is above 0.
func podGroup(minCount int32, changes ...func(*schedulingapi.PodGroup)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		group := &schedulingapi.PodGroup{}
		group.Namespace, group.Name, group.UID = tc.Namespace, "workers", tc.UID("workers")
		if minCount > 0 {
			group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: minCount}
		}
		for _, change := range changes {
			change(group)
		}
		s.PodGroups = append(s.PodGroups, group)
	}
}

// sharing returns the group with a claim for all of its pods, made from a template. Its
// minCount is all pods if that is the only claim, else one.
func sharing(entry, template string) []any {
	minCount := int32(5)
	if entry == "shared" {
		minCount = 1
	}
	return []any{podGroup(minCount, func(g *schedulingapi.PodGroup) {
		g.Spec.ResourceClaims = []schedulingapi.PodGroupResourceClaim{{Name: entry, ResourceClaimTemplateName: &template}}
	})}
}

// members returns pods of the group with claims from a template.
func members(count int, name, template string, changes ...func(*corev1.Pod)) []any {
	list := make([]any, 0, count)
	for i := range count {
		list = append(list, queuedPodOf(fmt.Sprintf("%s-%d", name, i), template, time.Hour-time.Duration(i)*time.Second, append(changes, tc.InGroup("workers"))...))
	}
	return list
}

// kindsText returns a line for each kind of members.
func kindsText(m *api.Members) string {
	lines := make([]string, 0, len(m.Kinds))
	for _, k := range m.Kinds {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", k.Count, k.Verdict, k.Code, strings.Join(k.Nodes, ","))))
	}
	return strings.Join(lines, "; ")
}

// TestPodGroups asks about a PodGroup on two nodes with two devices each.
func TestPodGroups(t *testing.T) {
	for name, test := range map[string]struct {
		parts   []any
		verdict api.Verdict
		code    api.Code
		summary string
		// group is minCount, existing, fit, fits.
		group string
		kinds string
	}{
		"all fit": {
			parts: append(members(4, "worker", "one"), podGroup(4)), verdict: api.Fits,
			group: "4 of 4, 4 fit: true", kinds: "4 Fits  n1,n2",
		},
		"the gang is too large": {
			parts: append(members(5, "worker", "one"), podGroup(5)), verdict: api.Blocked, code: api.GangIncomplete,
			summary: "4 of 5 pods of PodGroup workers fit, minCount is 5: all of them are scheduled, or none.",
			group:   "5 of 5, 4 fit: false", kinds: "1 DoesNotFit PodsCompete; 4 Fits  n1,n2",
		},
		"minCount fit, and not all": {
			parts: append(members(5, "worker", "one"), podGroup(3)), verdict: api.DoesNotFit, code: api.PodsCompete,
			summary: "4 of 5 members fit, and the next one finds no devices left.",
			group:   "3 of 5, 4 fit: true", kinds: "1 DoesNotFit PodsCompete; 4 Fits  n1,n2",
		},
		"not enough exist": {
			parts: append(members(2, "worker", "one"), podGroup(3)), verdict: api.Blocked, code: api.GangIncomplete,
			summary: "PodGroup workers has 2 pods, minCount is 3: none is scheduled before.",
			group:   "3 of 2, 2 fit: false", kinds: "2 Fits  n1",
		},
		"no gang": {
			parts: append(members(5, "worker", "one"), podGroup(0)), verdict: api.DoesNotFit, code: api.PodsCompete,
			summary: "4 of 5 members fit, and the next one finds no devices left.",
			group:   "none of 5, 4 fit: true", kinds: "1 DoesNotFit PodsCompete; 4 Fits  n1,n2",
		},
		"a head and workers": {
			parts: append(append(members(1, "head", "three"), members(2, "worker", "two")...), podGroup(3)), verdict: api.DoesNotFit, code: api.CountUnsatisfiable,
			group: "3 of 3, 2 fit: false", kinds: "1 DoesNotFit CountUnsatisfiable; 2 Fits  n1,n2",
		},
		"some run": {
			parts: append(append(members(2, "worker", "two"), tc.Pod("old", tc.InGroup("workers"), tc.RunningOn("n1"), tc.Using("held")),
				tc.Claim("held", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-0").ReservedFor("old", string(tc.UID("old")))), podGroup(2)),
			verdict: api.DoesNotFit, code: api.PodsCompete,
			group: "2 of 3, 2 fit: true", kinds: "1 DoesNotFit PodsCompete; 1 Fits  n2; 1 Allocated  n1",
		},
		"a claim for all of them, which is yet to be created": {
			parts: append(members(5, "worker", "one"), sharing("gpu", "one")...), verdict: api.Fits,
			group: "5 of 5, 5 fit: true", kinds: "5 Fits  n1",
		},
		"a claim for all of them and one for each": {
			parts: append(members(3, "worker", "one", tc.UsingTemplate("shared", "one")), sharing("shared", "one")...), verdict: api.DoesNotFit, code: api.PodsCompete,
			summary: "1 of 3 members fit, and the next one finds no devices left.",
			group:   "1 of 3, 1 fit: true", kinds: "2 DoesNotFit PodsCompete; 1 Fits  n1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parts := append([]any{
				tc.Gates{"GenericWorkload", "DRAWorkloadResourceClaims"},
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...),
				tc.Template("one", tc.GPUs("gpu", 1)), tc.Template("two", tc.GPUs("gpu", 2)), tc.Template("three", tc.GPUs("gpu", 3)),
			}, test.parts...)
			e := explainEach(t, tc.Cluster(parts...), "PodGroup/workers")["PodGroup/workers"]
			if e.Verdict != test.verdict || e.Code != test.code || test.summary != "" && e.Summary != test.summary {
				t.Errorf("%s, code %s: %s", e.Verdict, e.Code, e.Summary)
			}
			if e.Members == nil || e.Members.Group == nil {
				t.Fatalf("members: %+v", e.Members)
			}
			g, minCount := e.Members.Group, "none"
			if g.MinCount != nil {
				minCount = fmt.Sprint(*g.MinCount)
			}
			if got := fmt.Sprintf("%s of %d, %d fit: %t", minCount, g.Existing, g.Fit, g.Fits); got != test.group {
				t.Errorf("group %s, want %s", got, test.group)
			}
			if got := kindsText(e.Members); got != test.kinds {
				t.Errorf("kinds %s, want %s", got, test.kinds)
			}
		})
	}
}

// A gang that is not placed takes nothing from the pods that come later.
func TestGangThatDoesNotFitTakesNothing(t *testing.T) {
	parts := append(members(3, "worker", "one"), podGroup(3), tc.Gates{"GenericWorkload"}, tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...),
		tc.Template("one", tc.GPUs("gpu", 1)), tc.Template("two", tc.GPUs("gpu", 2)), queuedPodOf("late", "two", time.Minute), queuedPodOf("later", "two", time.Second))
	found := explainEach(t, tc.Cluster(parts...), "PodGroup/workers", "Pod/late", "Pod/later")
	if e := found["PodGroup/workers"]; e.Verdict != api.Blocked || e.Members.FitNow != 2 {
		t.Errorf("the gang: %s, %+v: %s", e.Verdict, e.Members, e.Summary)
	}
	if e := found["Pod/late"]; e.Verdict != api.Fits {
		t.Errorf("the later pod: %s: %s", e.Verdict, e.Summary)
	}
	if e := found["Pod/later"]; e.Queue == nil || e.Queue.BeforeCount != 1 || e.Queue.Before[0].Name != "late" {
		t.Errorf("the last pod comes after %+v, want the later one alone: %s", e.Queue, e.Summary)
	}
}

// TestGangOfAnotherPriority covers a gang whose pods have a higher priority than it: the
// scheduler does not try it, and a later pod gets the available devices.
func TestGangOfAnotherPriority(t *testing.T) {
	parts := append(members(2, "worker", "one", func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](10) }), podGroup(2), tc.Gates{"GenericWorkload"},
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Template("one", tc.GPUs("gpu", 1)), tc.Template("two", tc.GPUs("gpu", 2)), queuedPodOf("late", "two", time.Minute))
	found := explainEach(t, tc.Cluster(parts...), "PodGroup/workers", "Pod/late")
	e := found["PodGroup/workers"]
	if e.Verdict != api.Blocked || e.Code != api.PodGroupMismatch || e.Stage != api.StageQueueing || e.Members.FitNow != 0 || e.Members.Group.Fits || len(e.Remedies) > 0 || len(e.NextSteps) == 0 {
		t.Errorf("the gang: %s %s in %s: %s; members %+v, group %+v, remedies %+v", e.Verdict, e.Code, e.Stage, e.Summary, e.Members, e.Members.Group, e.Remedies)
	}
	if e := found["Pod/late"]; e.Verdict != api.Fits {
		t.Errorf("the later pod: %s: %s", e.Verdict, e.Summary)
	}
}

// TestWhatWouldHoldAllMembers asks what would make a gang fit that does not.
func TestWhatWouldHoldAllMembers(t *testing.T) {
	holder := []any{
		tc.Pod("holder", tc.RunningOn("n1"), tc.Using("held")),
		tc.Claim("held", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-0").ReservedFor("holder", string(tc.UID("holder"))),
	}
	for name, test := range map[string]struct {
		parts     []any
		prospects string
		remedies  string
	}{
		"a claim is released": {
			parts: append(append(members(4, "worker", "one"), podGroup(4)), holder...), prospects: "ClaimsReleased Fits 4; MoreNodes Fits 4, 1 like n1",
			remedies: "lower minCount of PodGroup workers to 3: so many of its pods fit",
		},
		"several more nodes": {
			parts: append(append(members(8, "worker", "one"), podGroup(8)), holder...), prospects: "ClaimsReleased DoesNotFit 4; MoreNodes Fits 8, 3 like n1",
			remedies: "lower minCount of PodGroup workers to 3: so many of its pods fit",
		},
		"fewer devices each": {
			parts: append(members(4, "worker", "two"), podGroup(4)), prospects: "MoreNodes Fits 4, 2 like n1",
			remedies: "lower minCount of PodGroup workers to 2: so many of its pods fit; request 1 device instead of 2 in request gpu: all 4 pods fit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parts := append([]any{
				tc.Gates{"GenericWorkload"},
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...),
				tc.Template("one", tc.GPUs("gpu", 1)), tc.Template("two", tc.GPUs("gpu", 2)),
			}, test.parts...)
			answers := explainEach(t, tc.Cluster(parts...), "PodGroup/workers", "Pod/worker-0", "Pod/worker-3")
			e := answers["PodGroup/workers"]
			for _, name := range []string{"Pod/worker-0", "Pod/worker-3"} {
				if pod := answers[name]; pod.SameAs.Kind == "" && !reflect.DeepEqual(pod.Remedies, e.Remedies) {
					t.Errorf("%s has other remedies than its group: %+v", name, pod.Remedies)
				}
			}
			var prospects, remedies []string
			for _, p := range e.Members.Prospects {
				text := fmt.Sprintf("%s %s %d", p.Condition, p.Verdict, p.Fit)
				if p.Like != "" {
					text += fmt.Sprintf(", %d like %s", p.NodeCount, p.Like)
				}
				prospects = append(prospects, text)
			}
			for i := range e.Remedies {
				remedies = append(remedies, e.Remedies[i].Change)
			}
			if got := strings.Join(prospects, "; "); !strings.HasPrefix(got, test.prospects) {
				t.Errorf("prospects %s, want %s", got, test.prospects)
			}
			if got := strings.Join(remedies, "; "); got != test.remedies {
				t.Errorf("remedies %s, want %s", got, test.remedies)
			}
			if command := e.Remedies[0].Commands; len(command) != 1 || !strings.HasPrefix(command[0], "kubectl patch podgroup.scheduling.k8s.io") {
				t.Errorf("commands %q", command)
			}
		})
	}
}

// autoscaler returns a HorizontalPodAutoscaler of a workload.
func autoscaler(kind, name string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Outlines = append(s.Outlines, &snapshot.Outline{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "hpa"}, Of: metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
			Spec: snapshot.OutlineSpec{ScaleTargetRef: &snapshot.ScaleTarget{APIVersion: "apps/v1", Kind: kind, Name: name}},
		})
	}
}

// TestMembersKeepTheirDevices asks about a Deployment of which one pod has the only
// device and one waits. Nothing is to be had from the pod that has it: its controller
// would create it again.
func TestMembersKeepTheirDevices(t *testing.T) {
	ofWeb := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }
	parts := []any{
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)), deployment("web", "one"),
		func(s *snapshot.Snapshot) { s.Workloads[0].Replicas = ptr.To[int32](2) },
		tc.Claim("web-0-gpu", tc.GPUs("gpu", 1)).OwnedBy("Pod", "web-0").Holding(tc.Driver+"/n1/gpu-0").ReservedFor("web-0", string(tc.UID("web-0"))),
		tc.Pod("web-0", ofWeb, tc.UsingTemplate("gpu", "one"), tc.Generated("gpu", ptr.To("web-0-gpu")), tc.RunningOn("n1")),
		tc.Claim("web-1-gpu", tc.GPUs("gpu", 1)).OwnedBy("Pod", "web-1"),
		tc.Pod("web-1", ofWeb, tc.UsingTemplate("gpu", "one"), tc.Generated("gpu", ptr.To("web-1-gpu"))),
	}
	answers := explainEach(t, tc.Cluster(parts...), "Deployment/web", "Pod/web-1")
	e := answers["Deployment/web"]
	if e.Members == nil || e.Members.WithDevices != 1 || e.Members.FitNow != 0 {
		t.Fatalf("members %+v", e.Members)
	}
	for i := range e.Remedies {
		if strings.HasPrefix(e.Remedies[i].Change, "wait until") {
			t.Errorf("remedy %q", e.Remedies[i].Change)
		}
	}
	const want = "It fits on one more node like n1. On the present nodes it does not, even with the claims of all other pods released."
	if e.Outlook.Message != want {
		t.Errorf("outlook %q, want %q", e.Outlook.Message, want)
	}
	// The pod that waits gets the device if the other one leaves.
	if e := answers["Pod/web-1"]; e.Outlook.Fits != api.ClaimsReleased {
		t.Errorf("outlook of the pod: %+v", e.Outlook)
	}
}

// TestRemediesReachAllMembers counts how many pods of a workload fit after a remedy: its
// commands change the claims of all that wait, and the pods.
func TestRemediesReachAllMembers(t *testing.T) {
	needing := func(cpu string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: tc.ResourceList("cpu=" + cpu)}}}
		}
	}
	for name, test := range map[string]struct {
		model, cpu string
		want       string
	}{
		"the template of claims is changed": {"A200", "1", `remove the selector model "A200" from request gpu: all 2 pods fit`},
		"the template of pods is changed":   {"A100", "9", "request cpu 8 instead of 9 in container main: all 2 pods fit"},
	} {
		t.Run(name, func(t *testing.T) {
			request := tc.GPUs("gpu", 1, fmt.Sprintf(`device.attributes[%q].model == %q`, tc.Driver, test.model))
			change := needing(test.cpu)
			parts := []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1, "model=A100")...), tc.Pool("n2", tc.Devices(1, "model=A100")...),
				tc.Template("one", request), deployment("web", "one"),
				func(s *snapshot.Snapshot) {
					pod := &corev1.Pod{Spec: s.Workloads[0].Template.Spec}
					change(pod)
					s.Workloads[0].Template.Spec, s.Workloads[0].Replicas = pod.Spec, ptr.To[int32](2)
				},
			}
			for _, name := range []string{"web-0", "web-1"} {
				parts = append(
					parts, tc.Claim(name+"-gpu", request).OwnedBy("Pod", name),
					tc.Pod(name, change, tc.UsingTemplate("gpu", "one"), tc.Generated("gpu", ptr.To(name+"-gpu")), func(p *corev1.Pod) {
						p.Labels = map[string]string{"app": "web", "pod-template-hash": "abc"}
						p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-abc", UID: "rs", Controller: ptr.To(true)}}
					}),
				)
			}
			e := explainEach(t, tc.Cluster(parts...), "Deployment/web")["Deployment/web"]
			if len(e.Remedies) == 0 || e.Remedies[0].Change != test.want {
				t.Errorf("remedies %+v, want %s", e.Remedies, test.want)
			}
		})
	}
}

// TestRemediesOfMembersTakeLeastFirst lists the remedies of a workload in the order of its
// pod's remedies: changes without a loss come first.
func TestRemediesOfMembersTakeLeastFirst(t *testing.T) {
	broken := func(s *snapshot.Snapshot) {
		s.TaintRules = append(s.TaintRules, &resourceapi.DeviceTaintRule{
			ObjectMeta: metav1.ObjectMeta{Name: "broken"},
			Spec: resourceapi.DeviceTaintRuleSpec{
				DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(tc.Driver), Device: ptr.To("gpu-1")},
				Taint:          resourceapi.DeviceTaint{Key: "xid", Effect: resourceapi.DeviceTaintEffectNoSchedule},
			},
		})
	}
	parts := []any{
		queuedPodOf("web-0", "four", time.Hour, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }),
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...), tc.Template("four", tc.GPUs("gpu", 4)), deployment("web", "four"), broken,
		func(s *snapshot.Snapshot) { s.Workloads[0].Replicas = ptr.To[int32](1) },
	}
	want := []string{
		"delete DeviceTaintRule broken if it is no longer needed", "tolerate the device taint xid:NoSchedule if the workload can use such devices",
		"request 3 devices instead of 4 in request gpu",
	}
	for target, e := range explainEach(t, tc.Cluster(parts...), "Pod/web-0", "Deployment/web") {
		var got []string
		for _, r := range e.Remedies {
			got = append(got, r.Change)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// TestFewerReplicas asks about a Deployment of five of which two fit. With fewer it is
// all of them, unless other claims are in the way only for now.
func TestFewerReplicas(t *testing.T) {
	parts := []any{
		tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(2)...), tc.Template("one", tc.GPUs("gpu", 1)), deployment("web", "one"),
		func(s *snapshot.Snapshot) { s.Workloads[0].Replicas = ptr.To[int32](5) },
	}
	holder := []any{
		tc.Pod("holder", tc.RunningOn("n2"), tc.Using("held")),
		tc.Claim("held", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n2/gpu-0").ReservedFor("holder", string(tc.UID("holder"))),
	}
	var pods []any
	for i := range 5 {
		pods = append(pods, queuedPodOf(fmt.Sprintf("web-%d", i), "one", time.Hour, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }))
	}
	const scaled = "scale Deployment web to 3 replicas: no more fit on these nodes, whatever claims are released"
	for name, test := range map[string]struct {
		parts []any
		want  string
	}{
		"before it has pods":          {nil, scaled},
		"with pods":                   {pods, scaled},
		"an autoscaler would undo it": {append(slices.Clone(pods), autoscaler("Deployment", "web")), ""},
		"an autoscaler of another":    {append(slices.Clone(pods), autoscaler("StatefulSet", "web")), scaled},
		"autoscalers were not read": {
			append(slices.Clone(pods), func(s *snapshot.Snapshot) { s.Listed = nil }),
			"scale Deployment web to 3 replicas, unless a HorizontalPodAutoscaler sets that number: no more fit on these nodes, whatever claims are released",
		},
		"a claim is in the way": {append(slices.Clone(holder), pods...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := explainEach(t, tc.Cluster(append(slices.Clone(parts), test.parts...)...), "Deployment/web")["Deployment/web"]
			at := slices.IndexFunc(e.Remedies, func(r api.Remedy) bool { return strings.HasPrefix(r.Change, "scale ") })
			switch {
			case test.want == "" && at >= 0:
				t.Errorf("proposed: %+v", e.Remedies[at])
			case strings.HasPrefix(name, "an autoscaler would"):
				const hint = "HorizontalPodAutoscaler hpa sets the number of replicas of Deployment web, of which 3 fit: it would undo scaling it down, and a maxReplicas of 3 would not"
				if !slices.ContainsFunc(e.Hints, func(h api.Hint) bool { return h.Text == hint }) {
					t.Errorf("hints: %+v", e.Hints)
				}
			case test.want == "":
			case at < 0:
				t.Fatalf("no such remedy: %+v, members %+v", e.Remedies, e.Members)
			default:
				r := e.Remedies[at]
				if r.Change != test.want || r.Node == "" || r.UsedByCount > 0 || !slices.Equal(r.Commands, []string{"kubectl scale deployment web -n ml --replicas=3"}) || string(r.Edits[0].From) != "5" {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// TestOrderOfAlternatives covers a gang of which all pods fit only if the first does not
// take the alternative that it prefers.
func TestOrderOfAlternatives(t *testing.T) {
	alternative := func(name, size string) tc.RequestWrapper {
		return tc.GPUs(name, 1, fmt.Sprintf(`device.attributes[%q].size == %q`, tc.Driver, size))
	}
	parts := append([]any{
		tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "halves=2"),
		tc.Pool("n1", tc.Device("whole", "size=whole").Consuming("board", "halves=2"), tc.Device("half-0", "size=half").Consuming("board", "halves=1"), tc.Device("half-1", "size=half").Consuming("board", "halves=1")).Of(2),
		tc.Template("one", tc.FirstAvailable("w", alternative("whole", "whole"), alternative("half", "half"))), podGroup(2),
	}, members(2, "w", "one")...)
	snap := tc.Cluster(parts...)
	e := explainEach(t, snap, "PodGroup/workers")["PodGroup/workers"]
	if len(e.Remedies) == 0 || e.Remedies[0].Change != "prefer alternative half in request w, before whole: all 2 pods fit" {
		t.Fatalf("%s: remedies %+v", e.Summary, e.Remedies)
	}
	again := explainEach(t, applied(t, snap, &e.Remedies[0]), "PodGroup/workers")["PodGroup/workers"]
	if again.Verdict != api.Fits || again.Members.FitNow != 2 {
		t.Errorf("%s: %s", again.Verdict, again.Summary)
	}
}
