// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
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

// TestReasonsAfterEvents has, after any events, the reasons that there are if all is
// explained afresh, although not all is.
func TestReasonsAfterEvents(t *testing.T) {
	cases, length := 9, 8
	if more, err := strconv.Atoi(os.Getenv("CASES")); err == nil {
		cases = more
	}
	kept, again := 0, 0
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
			before := s.model.live.Reasons.Version()
			s.changed()
			again += s.model.live.Reasons.Version() - before
			kept += len(s.model.live.Reasons.All()) - (s.model.live.Reasons.Version() - before)
			fresh, _, err := live.Take(t.Context(), source, nil)
			if err != nil {
				t.Fatal(err)
			}
			reasons := live.NewReasons()
			for of, more := reasons.Next(fresh, testTime()); more; of, more = reasons.Next(fresh, testTime()) {
				reasons.Work(t.Context(), fresh, of, testTime())
			}
			if diff := cmp.Diff(plain(reasons), plain(s.model.live.Reasons)); diff != "" {
				t.Fatalf("seed %d: after %q (-afresh +shown):\n%s", seed, happened, diff)
			}
		}
	}
	if kept < cases || again < cases {
		t.Errorf("%d reasons were kept, %d found again", kept, again)
	}
	t.Logf("%d reasons were kept, %d found again", kept, again)
}

// plain returns reasons without when they were found.
func plain(r *live.Reasons) map[string]string {
	texts := map[string]string{}
	for of, found := range r.All() {
		texts[fmt.Sprint(of)] = fmt.Sprintf("%s %s %s %s %s %q\n%s", found.Word(), found.Stage, found.Outlook, found.Summary, found.Actor, found.Remedies, asJSON(found.Answer))
	}
	return texts
}

func asJSON(of any) string {
	text, err := json.MarshalIndent(of, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
