// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestCollectEventsOfStartingPods counts the requests for events: none where no pod
// with devices is about to start, two for each namespace where one is, and two for
// the whole cluster if these are many.
func TestCollectEventsOfStartingPods(t *testing.T) {
	starting := map[string]any{
		"spec":   map[string]any{"nodeName": "node-a", "resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimName": "gpu"}}},
		"status": map[string]any{"phase": "Pending"},
	}
	running := map[string]any{"spec": starting["spec"], "status": map[string]any{"phase": "Running"}}
	waiting := map[string]any{"spec": map[string]any{"resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimName": "gpu"}}}}
	many := []map[string]any{}
	for i := range 6 {
		many = append(many, object(fmt.Sprintf("team-%d/p", i), starting))
	}
	for name, test := range map[string]struct {
		pods    []map[string]any
		options Options
		asked   []string
		events  []string
	}{
		"nobody starts":          {[]map[string]any{object("ml/p", running), object("ml/q", waiting)}, Options{AllNamespaces: true, Starting: true}, nil, []string{}},
		"not asked for":          {[]map[string]any{object("ml/p", starting)}, Options{AllNamespaces: true}, nil, []string{}},
		"one":                    {[]map[string]any{object("ml/p", starting), object("ml/q", running)}, Options{AllNamespaces: true, Starting: true}, []string{"/api/v1/namespaces/ml/events", "/api/v1/namespaces/ml/events"}, []string{"Event ml/of-p"}},
		"in another namespace":   {[]map[string]any{object("other/p", starting)}, Options{Namespace: "ml", Starting: true}, nil, []string{}},
		"in too many namespaces": {many, Options{AllNamespaces: true, Starting: true}, []string{"/api/v1/events", "/api/v1/events"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.URL.Query().Get("fieldSelector") == "reason=FailedCreate" {
					apiServer{r.URL.Path: listOf("v1", "Event")}.ServeHTTP(w, r)
					return
				}
				asked = append(asked, r.URL.Path)
				about := func(pod string) map[string]any {
					return map[string]any{"involvedObject": map[string]any{"kind": "Pod", "namespace": "ml", "name": pod}}
				}
				list := listOf("v1", "Event")
				if r.URL.Query().Get("fieldSelector") == "reason=FailedPrepareDynamicResources" {
					list = listOf("v1", "Event", object("ml/of-p", about("p")), object("ml/of-q", about("q")))
				}
				apiServer{r.URL.Path: list}.ServeHTTP(w, r)
			})
			answers := smallCluster().with(apiServer{"/api/v1/pods": listOf("v1", "Pod", test.pods...), "/api/v1/events": events, "/api/v1/namespaces/ml/events": events})
			s := mustCollect(t, start(t, answers), test.options)
			if !slices.Equal(asked, test.asked) {
				t.Errorf("asked %v, want %v", asked, test.asked)
			}
			expect(t, "events", test.events, named("Event", s.Events))
		})
	}
}

// TestRefused reads the workloads with devices whose pods the API server refuses: a
// StatefulSet, and the Deployment of a ReplicaSet.
func TestRefused(t *testing.T) {
	template := map[string]any{"spec": map[string]any{"containers": []any{}, "resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimTemplateName": "one"}}}}
	plain := map[string]any{"spec": map[string]any{"containers": []any{}}}
	failed := func(apiVersion, kind, name string) map[string]any {
		return object("ml/"+name+".1", map[string]any{
			"reason": "FailedCreate", "type": "Warning", "message": "no",
			"involvedObject": map[string]any{"apiVersion": apiVersion, "kind": kind, "namespace": "ml", "name": name},
		})
	}
	workload := func(kind, name string, template, status map[string]any, owners ...any) map[string]any {
		return object("ml/"+name, map[string]any{
			"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"namespace": "ml", "name": name, "uid": name, "ownerReferences": owners},
			"spec": map[string]any{"template": template}, "status": status,
		})
	}
	const apps = "/apis/apps/v1/namespaces/ml/"
	cluster := smallCluster().with(apiServer{
		"/api/v1/namespaces/ml/events": listOf("v1", "Event", failed("apps/v1", "ReplicaSet", "train-1"), failed("apps/v1", "StatefulSet", "serve"), failed("apps/v1", "StatefulSet", "web"), failed("v1", "PersistentVolumeClaim", "disk")),
		apps + "replicasets/train-1": workload("ReplicaSet", "train-1", template, nil,
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": "train", "controller": true}),
		apps + "deployments/train": workload("Deployment", "train", template, map[string]any{"observedGeneration": 1, "conditions": []any{
			map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"},
		}}),
		apps + "statefulsets/serve": workload("StatefulSet", "serve", template, nil),
		apps + "statefulsets/web":   workload("StatefulSet", "web", plain, nil),
	})
	read := func(answers apiServer, opts Options) (*snapshot.Snapshot, []string) {
		s := mustCollect(t, start(t, answers), opts)
		var found []string
		for _, w := range s.Workloads {
			found = append(found, w.Kind+" "+w.Name)
		}
		for _, event := range s.Events {
			found = append(found, event.Name)
		}
		return s, found
	}
	s, found := read(cluster, Options{Namespace: "ml", Starting: true})
	expect(t, "gaps", nil, gapTexts(s))
	expect(t, "workloads and events", []string{"StatefulSet serve", "Deployment train", "serve.1"}, found)
	if c := s.Workloads[1].Conditions; len(c) != 1 || c[0].Message != "no" {
		t.Errorf("the conditions of the Deployment are %+v", c)
	}
	if _, found := read(cluster, Options{Namespace: "ml"}); len(found) > 0 {
		t.Errorf("read without being asked for: %v", found)
	}
	s, _ = read(cluster.with(apiServer{"/api/v1/namespaces/ml/events": forbid()}), Options{Namespace: "ml", Starting: true})
	expect(t, "gaps", []string{"events[]: this user may not list events in namespace ml"}, gapTexts(s))
}
