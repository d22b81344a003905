// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// deployment adds one whose pods use the template one.
func deployment(replicas int32) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Workloads = append(s.Workloads, &snapshot.Workload{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "web"},
			Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Replicas:   &replicas,
			Template:   corev1.PodTemplateSpec{Spec: tc.Pod("", tc.UsingTemplate("gpu", "one")).Spec},
		})
	}
}

// TestFind covers what targets stand for: their pod, and the claims of it.
func TestFind(t *testing.T) {
	web := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }
	revised := func(hash string, age time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "web", "pod-template-hash": hash}
			p.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(-age))
		}
	}
	one := tc.Template("one", tc.GPUs("gpu", 1))
	for name, test := range map[string]struct {
		parts        []any
		kind, name   string
		pod          string
		claims       []string
		hypothetical bool
		queued       bool
		users        int
	}{
		"claim that no pod uses":            {parts: []any{tc.Claim("c", tc.GPUs("gpu", 1))}, kind: api.KindClaim, name: "c", claims: []string{"c"}},
		"claim of a pod that waits":         {parts: []any{tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("c")), tc.Pod("q", tc.Using("c"))}, kind: api.KindClaim, name: "c", pod: "p", claims: []string{"c"}, users: 2},
		"allocated claim":                   {parts: []any{tc.Claim("c", tc.GPUs("gpu", 1)).Holding("n1/gpu-0"), tc.Pod("p", tc.Using("c"))}, kind: api.KindClaim, name: "c", claims: []string{"c"}, users: 1},
		"template":                          {parts: []any{one}, kind: api.KindTemplate, name: "one", claims: []string{"one-…"}},
		"pod that waits":                    {parts: []any{tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("c"))}, kind: api.KindPod, name: "p", pod: "p", claims: []string{"c"}, queued: true, users: 1},
		"pod that runs":                     {parts: []any{tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("c"), tc.RunningOn("n1"))}, kind: api.KindPod, name: "p", pod: "p", claims: []string{"c"}, users: 1},
		"pod of a manifest":                 {parts: []any{one, tc.Pod("p", tc.UsingTemplate("gpu", "one"), func(p *corev1.Pod) { p.UID, p.CreationTimestamp = "", metav1.Time{} })}, kind: api.KindPod, name: "p", pod: "p", claims: []string{"p-gpu"}, hypothetical: true, queued: true},
		"workload without pods":             {parts: []any{one, deployment(2)}, kind: "Deployment", name: "web", pod: "web-…", claims: []string{"web-…-gpu"}, hypothetical: true, queued: true},
		"workload whose second pod waits":   {parts: []any{one, deployment(2), tc.Pod("w1", web, tc.RunningOn("n1"), tc.UsingTemplate("gpu", "one")), tc.Pod("w2", web, tc.UsingTemplate("gpu", "one"))}, kind: "Deployment", name: "web", pod: "w2", claims: []string{"w2-gpu"}, queued: true, users: 2},
		"workload during a rollout":         {parts: []any{one, deployment(2), tc.Pod("old", tc.UsingTemplate("gpu", "one"), revised("1", time.Hour)), tc.Pod("new", tc.UsingTemplate("gpu", "one"), revised("2", time.Minute))}, kind: "Deployment", name: "web", pod: "new", claims: []string{"new-gpu"}, queued: true, users: 2},
		"workload before its new pods wait": {parts: []any{one, deployment(2), tc.Pod("old", tc.UsingTemplate("gpu", "one"), revised("1", time.Hour)), tc.Pod("new", tc.UsingTemplate("gpu", "one"), revised("2", time.Minute), tc.RunningOn("n1"))}, kind: "Deployment", name: "web", pod: "old", claims: []string{"old-gpu"}, queued: true, users: 2},
		"extended resource that no one has": {parts: []any{tc.Pod("p", tc.Requesting("example.com/gpu=1"))}, kind: api.KindPod, name: "p", pod: "p", queued: true, users: 1},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.parts, tc.Nodes("n1"))...)
			got, err := target.Find(testquestion.Allocator(t, snap).Facts, target.Options{Object: api.Ref(test.kind, tc.Namespace, test.name)})
			if err != nil {
				t.Fatal(err)
			}
			pod, claims := "", []string(nil)
			if got.Pod != nil {
				pod = got.Pod.Name
			}
			for _, c := range got.Claims {
				if c.Claim != nil {
					claims = append(claims, c.Claim.Name)
				}
			}
			if pod != test.pod || !slices.Equal(claims, test.claims) || got.Hypothetical != test.hypothetical || got.Queued() != test.queued || len(got.Users) != test.users {
				t.Errorf("pod %q, claims %q, hypothetical %t, queued %t, %d users", pod, claims, got.Hypothetical, got.Queued(), len(got.Users))
			}
		})
	}
}

// TestNotFound covers targets that do not exist, with what there is instead.
func TestNotFound(t *testing.T) {
	for name, test := range map[string]struct {
		parts []any
		opts  target.Options
		want  string
	}{
		"typo":              {[]any{tc.Claim("train", tc.GPUs("gpu", 1))}, target.Options{Object: api.Ref(api.KindClaim, "", "trian")}, "find ResourceClaim ml/trian: not found in a test; did you mean train?"},
		"another namespace": {[]any{tc.Serving("train", "n1")}, target.Options{Object: api.Ref(api.KindClaim, "", "train")}, "find ResourceClaim ml/train: not found in a test\none of that name exists in namespace serving: use -n serving"},
		"none at all":       {nil, target.Options{Object: api.Ref(api.KindPod, "", "p")}, "find Pod ml/p: not found in a test\nno Pod exists"},
		"not permitted":     {[]any{tc.Gap(snapshot.ResourcePods, "alice may not list pods")}, target.Options{Object: api.Ref(api.KindPod, "", "p")}, "find Pod ml/p: not found in a test\nit may exist all the same: alice may not list pods"},
		"no claims":         {[]any{tc.Pod("p")}, target.Options{Object: api.Ref(api.KindPod, "", "p")}, "Pod ml/p uses no ResourceClaim and no extended resource of a DeviceClass"},
		"no such node":      {[]any{tc.Claim("c", tc.GPUs("gpu", 1))}, target.Options{Object: api.Ref(api.KindClaim, "", "c"), Node: "elsewhere"}, "find Node elsewhere: not found in a test\nexisting nodes: n1"},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.parts, tc.Nodes("n1"))...)
			test.opts.Object.Namespace = tc.Namespace
			_, err := target.Find(testquestion.Allocator(t, snap).Facts, test.opts)
			var found *target.Error
			if !errors.As(err, &found) || err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestWithClassPriority knows the priority of a class from its pods, or because all
// clusters have it.
func TestWithClassPriority(t *testing.T) {
	ofClass := func(name string, priority *int32) *corev1.Pod {
		return tc.Pod("p-"+name, func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = name, priority })
	}
	snap := tc.Cluster(ofClass("high", ptr.To[int32](100)))
	for name, test := range map[string]struct {
		pod      *corev1.Pod
		priority string
		unknown  string
	}{
		"none":       {ofClass("", nil), "none", ""},
		"of a class": {ofClass("high", nil), "100", ""},
		"given":      {ofClass("high", ptr.To[int32](7)), "7", ""},
		"system":     {ofClass("system-node-critical", nil), "2000001000", ""},
		"unknown":    {ofClass("low", nil), "none", "low"},
	} {
		before := test.pod.DeepCopy()
		pod, priority := target.WithClassPriority(snap, test.pod), "none"
		if pod.Spec.Priority != nil {
			priority = fmt.Sprint(*pod.Spec.Priority)
		}
		s := &target.Target{Pod: pod, Hypothetical: true}
		if priority != test.priority || s.UnknownPriority() != test.unknown {
			t.Errorf("%s: priority %s, unknown %q; want %s, %q", name, priority, s.UnknownPriority(), test.priority, test.unknown)
		}
		if ptr.Deref(test.pod.Spec.Priority, -1) != ptr.Deref(before.Spec.Priority, -1) {
			t.Errorf("%s: the pod was changed", name)
		}
	}
}
