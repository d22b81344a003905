// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
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
