// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// chance changes a cluster at random.
type chance struct {
	*rand.Rand
	snap *snapshot.Snapshot
	made int
}

// amendOne makes one of a list into another one, which is amended.
func amendOne[T any](e *chance, list *[]*T, amend func(*T)) {
	if len(*list) == 0 {
		return
	}
	*list = slices.Clone(*list)
	at := e.IntN(len(*list))
	object := *(*list)[at]
	amend(&object)
	(*list)[at] = &object
}

// drop removes one of a list.
func drop[T any](e *chance, list *[]*T) {
	if len(*list) > 0 {
		at := e.IntN(len(*list))
		*list = slices.Delete(slices.Clone(*list), at, at+1)
	}
}

// newPod adds a pod, in an existing namespace or in another one.
func (e *chance) newPod(amend func(*corev1.Pod)) {
	e.made++
	name := fmt.Sprintf("made-%d", e.made)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "elsewhere", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Time{Time: testTime().Add(-time.Minute)},
	}}
	if len(e.snap.Pods) > 0 && e.IntN(2) == 0 {
		pod.Namespace = e.snap.Pods[e.IntN(len(e.snap.Pods))].Namespace
	}
	pod.Spec.Priority = ptr.To(int32(e.IntN(3) * 100))
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(e.IntN(200)), resource.DecimalSI)}}}}
	pod.Status.Phase = corev1.PodPending
	if e.IntN(8) == 0 {
		pod.Namespace = metav1.NamespaceSystem
	}
	amend(pod)
	e.snap = e.snap.With(&snapshot.Snapshot{Pods: []*corev1.Pod{pod}})
}

func (e *chance) node() string {
	if len(e.snap.Nodes) == 0 {
		return ""
	}
	return e.snap.Nodes[e.IntN(len(e.snap.Nodes))].Name
}

// happen changes the cluster by one event. Most are about pods.
func (e *chance) happen() string {
	next := *e.snap
	next.Pods = slices.Clone(next.Pods)
	e.snap = &next
	kinds := e.kinds()
	name := slices.Sorted(maps.Keys(kinds))[e.IntN(len(kinds))]
	kinds[name]()
	return name
}

func (e *chance) kinds() map[string]func() {
	s := e.snap
	pod := func(amend func(*corev1.Pod)) func() { return func() { amendOne(e, &s.Pods, amend) } }
	claim := func(amend func(*resourceapi.ResourceClaim)) func() { return func() { amendOne(e, &s.Claims, amend) } }
	node := func(amend func(*corev1.Node)) func() { return func() { amendOne(e, &s.Nodes, amend) } }
	return map[string]func(){
		"ready": pod(func(p *corev1.Pod) {
			p.Status.Conditions = append(slices.Clone(p.Status.Conditions), corev1.PodCondition{Type: corev1.PodReady, Status: []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[e.IntN(2)]})
		}),
		"restarted": pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: int32(e.IntN(1000)), State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		}),
		"unschedulable": pod(func(p *corev1.Pod) {
			if p.Spec.NodeName == "" {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: fmt.Sprint("try ", e.IntN(1000))}}
			}
		}),
		"runs": pod(func(p *corev1.Pod) {
			if p.Spec.NodeName != "" {
				p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprint("10.0.0.", e.IntN(200))
			}
		}),
		"resized": pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = nil
			for _, c := range p.Spec.Containers {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(e.IntN(300)), resource.DecimalSI)}})
			}
		}),
		"ended":    pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		"deleting": pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: testTime()} }),
		"bound": pod(func(p *corev1.Pod) {
			if p.Spec.NodeName == "" {
				p.Spec.NodeName = e.node()
			}
		}),
		"gone":    func() { drop(e, &s.Pods) },
		"created": func() { e.newPod(func(*corev1.Pod) {}) },
		"created with a class": func() {
			e.newPod(func(p *corev1.Pod) { p.Spec.PriorityClassName = "urgent" })
		},
		"created on a node": func() { e.newPod(func(p *corev1.Pod) { p.Spec.NodeName = e.node() }) },
		"created with claims": func() {
			e.newPod(func(p *corev1.Pod) {
				if pending := slices.DeleteFunc(slices.Clone(s.Claims), func(c *resourceapi.ResourceClaim) bool { return !snapshot.Pending(c) }); len(pending) > 0 {
					of := pending[e.IntN(len(pending))]
					p.Namespace, p.Spec.ResourceClaims = of.Namespace, []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &of.Name}}
				}
			})
		},
		"driver pod": func() {
			e.newPod(func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "driver", Controller: ptr.To(true)}}
				p.Spec.NodeName = e.node()
			})
		},
		"deallocated": claim(func(c *resourceapi.ResourceClaim) { c.Status = resourceapi.ResourceClaimStatus{} }),
		"unreserved":  claim(func(c *resourceapi.ResourceClaim) { c.Status.ReservedFor = nil }),
		"allocated": claim(func(c *resourceapi.ResourceClaim) {
			if of := s.Claims[e.IntN(len(s.Claims))]; c.Status.Allocation == nil {
				c.Status.Allocation = of.Status.Allocation
			}
		}),
		"released": func() { drop(e, &s.Claims) },
		"cordoned": node(func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable }),
		"node label": node(func(n *corev1.Node) {
			n.Labels = map[string]string{corev1.LabelHostname: n.Name, "seen": fmt.Sprint(e.IntN(9))}
		}),
		"unpublished": func() {
			if e.IntN(3) == 0 {
				drop(e, &s.Slices)
			}
		},
		"class gone": func() {
			if e.IntN(5) == 0 {
				drop(e, &s.Classes)
			}
		},
	}
}

// TestCausesAfterEvents shows, after any events, the causes that "kubectl dra status" finds in the same
// cluster: same order, same numbers, same sentences.
func TestCausesAfterEvents(t *testing.T) {
	cases, length := 4, 4
	if more, err := strconv.Atoi(os.Getenv("CASES")); err == nil {
		cases = more
	}
	found := 0
	for seed := range uint64(cases) {
		e := &chance{Rand: rand.New(rand.NewPCG(seed, 19)), snap: example(t)}
		if seed%3 > 0 {
			e.snap = fleet.Random(seed).Snapshot
		}
		source := newMoving(e.snap)
		s := newSession(t, Options{Source: source}, 120, 40)
		var happened []string
		for range length {
			for range 1 + e.IntN(3) {
				happened = append(happened, e.happen())
			}
			source.set(e.snap)
			s.changed()
			want, err := cause.Find(t.Context(), cluster.New(e.snap), cause.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := forecast.AddPlaceableTo(t.Context(), cluster.New(e.snap), want.Status.Capacity); err != nil {
				t.Fatal(err)
			}
			shown := s.model.causes()
			if shown == nil {
				t.Fatalf("seed %d: no causes are shown", seed)
			}
			if diff := cmp.Diff(want.Status, shown.Status); diff != "" {
				t.Fatalf("seed %d: after %q (-status +shown):\n%s", seed, happened, diff)
			}
			found += len(want.Status.Causes)
		}
	}
	if found < cases {
		t.Errorf("%d causes were found", found)
	}
}

// TestCausesAreKept finds no causes again while nothing happens, and finds them again once something did.
func TestCausesAreKept(t *testing.T) {
	source := newMoving(example(t))
	now := testTime()
	s := newSession(t, Options{Source: source, Now: func() time.Time { return now }}, 120, 40)
	before := s.model.causes()
	if before == nil {
		t.Fatal("no causes are found")
	}
	for range 30 {
		now = now.Add(time.Second)
		later := *source.Snapshot()
		later.TakenAt = now
		source.set(&later)
		s.send(live.ClockMsg{})
		s.rest()
	}
	if s.model.causes() != before {
		t.Error("causes were found again although nothing happened")
	}
	beating := *source.Snapshot()
	beating.Nodes = slices.Clone(beating.Nodes)
	for i, node := range beating.Nodes {
		beating.Nodes[i] = node.DeepCopy()
		for j := range beating.Nodes[i].Status.Conditions {
			beating.Nodes[i].Status.Conditions[j].LastHeartbeatTime = metav1.Time{Time: now}
		}
		beating.Nodes[i].ResourceVersion += "0"
	}
	source.set(&beating)
	s.changed()
	if s.model.causes() != before {
		t.Error("causes were found again after heartbeats of nodes")
	}
	source.set(allocated(source.Snapshot(), "research", "finetune-0-gpus-qh957", "gpu-08", now))
	s.changed()
	if s.model.causes() == before {
		t.Error("a change is not looked at")
	}
}

// TestChangesSinceLooked marks the causes that began and ended, and counts the pods that got a node,
// since somebody looked at the dashboard before.
func TestChangesSinceLooked(t *testing.T) {
	before := example(t)
	source := newMoving(before)
	now := testTime()
	s := newSession(t, Options{Source: source, Now: func() time.Time { return now }}, 140, 50)
	s.lacks(" since 09:30: ")
	s.keys("down")

	now = now.Add(2 * time.Hour)
	after := *before
	after.TakenAt = now
	after.Nodes, after.Pods = slices.Clone(before.Nodes), slices.Clone(before.Pods)
	for i, node := range after.Nodes {
		node = node.DeepCopy()
		switch node.Name {
		case "gpu-08":
			node.Spec.Unschedulable = false
		case "gpu-04":
			node.Spec.Unschedulable = true
		}
		after.Nodes[i] = node
	}
	for i, pod := range after.Pods {
		if pod.Name == "finetune-0" {
			after.Pods[i] = pod.DeepCopy()
			after.Pods[i].Spec.NodeName = "gpu-03"
		}
	}
	source.set(&after)
	s.changed()
	s.shows("since 09:30: ", "1 pod started", "1 node is cordoned: gpu-04")
	s.keys("2", "1")
	s.shows("since 09:30: ", "1 pod started")
	now = now.Add(time.Second)
	s.keys("9")
	s.shows("since 09:30: ")
	// Somebody who comes back sees what happened since.
	now = now.Add(time.Hour)
	s.keys("1")
	s.lacks("since 09:30: ")
}

// TestFilterOnFirstPage filters the list behind the section with the cursor.
func TestFilterOnFirstPage(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("/", `"cordoned`, "enter")
	s.shows("[9 causes:13]", "filter cordoned   1/1 of 13 causes", "esc all rows", "1 node is cordoned: gpu-08")
	// Pods that suffer are found, too.
	s.keys("esc", "/", `"vision/calib`, "enter")
	s.shows("1/1 of 13 causes", "pool gpu-09 of driver gpu.example.com is incomplete")
	s.keys("1", "home", "/", `"nic`)
	s.shows("[7 classes]", "1/1 of 4 classes", "filter classes: nic")
	s.keys("esc")
	s.shows("[1 overview]")
	s.keys("end", "/", `"vision`, "enter")
	s.shows("[0 teams]", "1/3 of 13 rows")
}

// TestOldCauses keeps the causes that are known, with their time, until new ones are found.
func TestOldCauses(t *testing.T) {
	before := example(t)
	source := newMoving(before)
	m := New(t.Context(), Options{Source: source, Name: "test cluster", Env: func(string) string { return "" }, Now: testTime, After: func(_ time.Duration, msg tea.Msg) tea.Cmd {
		return func() tea.Msg { return laterMsg{msg} }
	}})
	s := &session{t: t, model: m}
	s.send(tea.WindowSizeMsg{Width: 120, Height: 50})
	s.run(m.live.Take())
	s.shows("Causes 13", "fits on gpu-03")
	s.lacks("as of")
	// The pauses after the picture and after the causes are not over.
	changed := before.With(&snapshot.Snapshot{Pods: []*corev1.Pod{func() *corev1.Pod {
		pod := before.Pod("research", "finetune-0").DeepCopy()
		pod.Name, pod.UID, pod.CreationTimestamp = "newcomer", "newcomer", metav1.Time{Time: testTime().Add(-time.Second)}
		pod.Status.ResourceClaimStatuses = nil
		return pod
	}()}})
	source.set(changed)
	pauses := s.later
	s.later = nil
	s.send(live.ChangedMsg{})
	s.send(pauses[0])
	s.shows("Causes 13", "as of 09:30:00", "Waiting 11", "research/newcomer")
	s.later = append(s.later, pauses...)
	s.rest()
	s.lacks("as of")
}

// TestRefusedWorkload shows a workload whose pods the API server refuses, although no pod waits.
func TestRefusedWorkload(t *testing.T) {
	template := "one-gpu"
	snap := example(t)
	quiet := *snap
	quiet.Pods = slices.DeleteFunc(slices.Clone(snap.Pods), snapshot.Waits)
	set := &snapshot.Workload{
		TypeMeta: metav1.TypeMeta{Kind: "ReplicaSet", APIVersion: "apps/v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "refused", UID: "refused", CreationTimestamp: metav1.Time{Time: testTime().Add(-time.Hour)}},
		Conditions: []metav1.Condition{{
			Type: "ReplicaFailure", Status: metav1.ConditionTrue, Reason: "FailedCreate",
			Message: `pods "refused-abc" is forbidden: exceeded quota: gpus, requested: count/pods=1, used: count/pods=2, limited: count/pods=2`,
		}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}},
			Containers:     []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		}},
	}
	quiet.Workloads = append(slices.Clone(snap.Workloads), set)
	s := newSession(t, Options{Source: live.NewFixed(&quiet), Fixed: true}, 120, 40)
	s.shows("research/replicaset/refused")
	s.lacks("no pod waits")
	s.keys("6")
	s.shows("research/replicaset/refused", "1/1 rows, 0 pods")
	s.keys("enter")
	s.shows("why ReplicaSet research/refused")
}

// TestSeverityWithoutColor tells the severity of a cause by a sign.
func TestSeverityWithoutColor(t *testing.T) {
	s := browse(t, 120, 40)
	s.shows("Causes 13  ✗ error  ! warning", "›✗  1 ", " !  8 ")
	s.keys("9")
	s.shows("› ✗  1 ", "  !  8 ", "    13 ", "1/13 causes   ✗ error   ! warning")
}

// TestAnswerHasAReason says in a few words which error there is, and which node equal pods get first.
func TestAnswerHasAReason(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("6")
	s.shows("cause 5: selector error", "cause 6: class not found", "cause 7: pool incomplete")
	snap := fleet.Mixed(60)
	fleet.AddWaiting(snap, 120)
	s = newSession(t, Options{Source: live.NewFixed(snap), Fixed: true}, 80, 24)
	if shown := s.screen(); !regexp.MustCompile(`fit, node-\d{5} first`).MatchString(shown) {
		t.Errorf("no node of the first of equal pods:\n%s", shown)
	}
}

// TestTotalOfTeam opens all claims of a namespace from the row for all of its classes.
func TestTotalOfTeam(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("0", "down", "down", "down")
	if row := strings.Join(strings.Fields(s.selected()), " "); row != "› research all classes 12 24 % 4 151m 0" {
		t.Errorf("the total is %q", row)
	}
	s.keys("enter")
	s.shows("teams > claims of research", "ablation-0-gpus-9gtjv", "ablation-0-nic-45jj7")
	s.lacks("serving")
}
